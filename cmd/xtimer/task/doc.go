// Package task has the commands of tasks, one a file.
package task

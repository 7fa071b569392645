// Package timer has the commands of timers, one a file.
package timer

// Package contexts has the commands of contexts: servers that the user gives names.
package contexts

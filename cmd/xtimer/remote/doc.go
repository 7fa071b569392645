// Package remote has the commands that speak to a running server: those of timers and
// tasks, one a file.
package remote

// Package transfer has the commands that bring timers from one place to another: import,
// export, backup and restore.
package transfer

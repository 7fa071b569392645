// Package remote is the running server that commands speak to: which server that is, how
// its answers and its errors are shown, and the commands that concern the server as a whole.
package remote

// Package exit defines how a command ends: its exit status, and the error behind it.
package exit

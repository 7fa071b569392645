// Package figures has the commands that show the figures of a server.
package figures

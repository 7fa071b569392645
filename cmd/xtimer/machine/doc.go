// Package machine is what the machine gives this process: memory, processors, files.
package machine

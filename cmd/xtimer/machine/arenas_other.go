//go:build !cgo || !linux

package machine

// fewArenas: Pebble takes its memory from Go's heap, or from another malloc.
func fewArenas() {}

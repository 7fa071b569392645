//go:build race

package simulator

// A seed takes ten times as long with the race detector.
func init() { seeds, repeats, settings = 24, 1, 2 }

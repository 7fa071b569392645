//go:build !failpoints

// Package failpoint marks the places at which a trial may stop the process.
package failpoint

// Armed tells that this program was built to fail on demand.
const Armed = false

// Hit is a place at which a test may kill the process, let it panic or let
// it sleep: see armed.go. Here it is nothing, and costs nothing.
func Hit(string) {}

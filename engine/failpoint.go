//go:build !failpoints

package engine

// Failpoints tells that this program was built to fail on demand.
const Failpoints = false

// Failpoint is a place at which a test may kill the process, let it panic or let
// it sleep: see failpoint_armed.go. Here it is nothing, and costs nothing.
func Failpoint(string) {}

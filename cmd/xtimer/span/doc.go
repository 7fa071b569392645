// Package span reads and writes durations as people do (7d, 1d12h, 90m), and instants by
// how long ago they were.
package span

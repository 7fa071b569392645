// Package wire reads and writes the JSON of the API: decode*.go read it, render*.go
// append it, and patch.go merges a change into a definition.
package wire

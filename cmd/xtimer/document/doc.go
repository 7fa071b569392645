// Package document is a YAML file of which every value knows its place, so that a fault
// is named by file, line and path.
package document

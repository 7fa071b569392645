// Package terminal is what people see of a command: colours, tables, progress, and JSON
// and YAML in their place.
package terminal

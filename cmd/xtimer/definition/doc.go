// Package definition reads the definitions of timers from files, and compares them field
// by field.
package definition

// Package inspect answers what readers ask: which tasks have ended, since when, and what
// each of them came to.
package inspect

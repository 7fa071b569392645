// Package conn takes the connections that requests come by, and bounds what their bytes
// take of the memory.
package conn

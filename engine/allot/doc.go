// Package allot has the limits of flow keys hold for all nodes of a cluster together: the owner
// of a key grants its calls to the nodes. See DESIGN.md.
package allot

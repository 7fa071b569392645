// Package target has the servers that trials of the real binary call: healthy, slow
// or mute ones, which remember every call cheaply enough for millions of them.
package target

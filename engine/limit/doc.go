// Package limit has the objects that say what a flow key allows, and who is paused: it puts
// them into force as rules of the queue (engine/flow).
//
//	kind "flow"    the limit of a key of an app, or of all keys that a pattern matches, and its pause and cooldown
//	kind "target"  likewise of a target, for the calls of all apps
//	kind "pause"   the pause of an app, under the name "app"; of EachApp, that of all apps
package limit

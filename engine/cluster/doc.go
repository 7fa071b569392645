// Package cluster decides which node owns which shard, and when a node is silent.
//
// Several nodes share one cold tier. No node is special. No comparison of clocks decides which node is silent.
// The scheduler runs a Member for each process of a node (xtimer serve --cluster).
//
//	plan.go      which node should own which shard
//	lease.go     until when a life may call, by its own clock
//	watch.go     which lives are silent, by the looker's own clock
//	clock.go     whether the wall clock is right, and the time that the node goes by
//	standing.go  whether the life may call, and why not
//	moves.go     which shards went from which node to which, as the life has seen it
//	answers.go   how long the beats take
//	member.go    the loop of one life: beat; look → bury → take → give
//	shards.go    the shards of the life
//	wish.go      what an administrator wishes of a node
//	join.go      the beginning of the life
//	leave.go     the end of the life
package cluster

// Package clusterdemo shows several nodes at work on one machine.
//
//	demo.go      the command: what happens, in order
//	servers.go   the MariaDB and the Redis that the nodes share
//	shares.go    which node owns which shard
//	node.go      a node: a process of this program
//	calls.go     the receiver, and how the calls went
package clusterdemo

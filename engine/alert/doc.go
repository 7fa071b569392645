// Package alert tells people of tasks that failed, of calls that are late, and of states.
//
//	Alerter.Ended   the end of a task, in the engine's goroutine: one load of a pointer where no
//	                rule is; a match puts an event into a ring, and nothing else
//	Alerter.First   a first attempt, likewise: what is late goes into the ring while there is room
//	Config.States   what is so now, asked every few seconds while a rule is about a state
//	judge           which event opens, counts or closes an incident                     (pure)
//	Alerter.Run     ring → judge → incidents, which are objects → outbox
//	outbox          a goroutine a channel: rate, digest, retries
//
// Of several nodes the owner of shard 0 judges (lead.go): it reads the failures of all nodes
// from history every few seconds, and asks the nodes for late calls and states (others.go), so
// that an incident opens once, and not once a node.
//
// An event that found the ring full is not lost: it waits behind the ring without the names of
// its timer, which the alerter reads from the definitions. Beyond a million of those, the alerter
// reads the failures of that time from history until it has as many as there were. A start reads
// history from the cursor on, which is stored every few seconds.
// A message is sent at least once, under the same id when it is repeated. The outbox sends
// with a function that package notify has, so this package knows no HTTP.
package alert

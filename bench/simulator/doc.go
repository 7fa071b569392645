// Package simulator runs the whole service, time and all, in a bubble: the
// engine with the real journal and the real embedded cold tier on a disk in
// memory that can crash, a warm tier that fails, a clock that is set, and a
// receiver that lies. What happens is drawn from a seed:
//
//	script.go    a seed becomes steps: requests and faults, each at its instant
//	machine.go   the machine: its disk, its clock (clock.go), one life of the engine after
//	             another; step.go makes a step happen
//	faults.go    what a life's disk and tiers do to it
//	crowd.go     a burst for a target that is mute, and what may be in memory and in flight
//	flows.go     timers name flow keys, whose limits are changed, and which are paused
//	receiver.go  what is called, and what it answers
//	act.go       a request is made, and what is known of its outcome noted
//	match.go     who asked for each version that is stored
//	dues.go      what should have been called, by brute force
//	logs.go      what was called and recorded goes to the checker, which judges it
//	judge.go     what only the inside tells is judged here: of calls judge_calls.go, of
//	             records judge_records.go; clock.go has what a clock that is set excuses
//
// A run has two phases. First faults, then none: all that was owed has to be
// over within a bound. Then the promises are checked one by one.
//
// One fault has no place in a bubble: when an operation of the disk fails, Pebble
// is left blocked until the process has ended. TestDiskErrors breaks it outside,
// each operation with -every.
//
// # Several nodes
//
// TestNodes runs three engines over one cold tier in memory with its table of nodes, and one
// mirror. Each has a journal on a disk of its own, a wall clock, and a monotonic clock with a
// rate of its own:
//
//	nodes_script.go  a seed becomes requests and faults of nodes
//	nodes.go         the nodes, and what happens to all of them
//	node.go          a node, and one life of it after another: killed, stopped, frozen
//	link.go          the ways to MySQL and Redis, which are cut, and delay what goes there
//	shared.go        the tiers and the mirror as one life sees them; table.go: the table
//	route.go         a request goes to a node, and to the others when the timer is another's
//	judge_nodes.go   what is promised of several nodes
//
// A node that is frozen stops at whatever it asks of a tier, of the table, of the mirror and of
// a receiver. It is judged that each call is made by the holder of its shard, under the fence
// of the holder; that fences come in order; that no call is early by the clock of its node, nor
// by more than half a second by the true time unless the node is alone; that a second node makes an attempt only marked;
// that what was taken is called again only where a life ended before that was known, or where it
// gave the shard while the call was under way; that no call begins after the answer to a delete
// or a change; that nothing is missing; and that ten seconds after the last fault each node has
// its part of the shards. Where MySQL goes back, all that stands there is called, and what was
// taken comes again only if what was stored of it may be lost, and who calls does not have the
// journal of who has called. Overlap and order are judged of the calls of one life under one
// fence. How late a hand-over is is not judged there. Of
// the mutations of several nodes other tests notice each: see mutation_test.go.
//
// # Which rules are judged here
//
// What a call may be, and what a record may say, are rules of bench/checker, for these
// runs as for trials of the real program. These stay, as logs cannot tell them as
// exactly:
//
//   - Which dues there were. An owner does not know what became of a request that broke
//     off; the store does. So it is matched with the versions that are stored, and the
//     checker is told the dues, with the generations that they are of.
//   - Versions of calls, and the order of calls of one timer (overlap, queue). Much happens
//     within one µs of a bubble's time, and logs have no order within that.
//   - What a start or a step of the clock found late, and must not be called: that goes by
//     when each of them looked.
//   - The store, the journal and the memory: identifiers, one record of a due, what is owed,
//     the watermark, places in flight, bounds of tasks and bytes.
//
// # What a seed repeats
//
// Steps, definitions, answers and faults are functions of the seed alone, and so
// are the instants at which they come, to the nanosecond. What the runtime
// decides is which of several goroutines goes first within one instant, and with
// it what a crash in the middle of that instant meets: how many operations the
// disk has done, and (CrashClone walks maps) which of the unsynced ones are kept.
// So a seed that fails may need a few runs to fail again: XTIMER_SEED=n go test
// -run TestSimulate -count=20 runs one seed 20 times.
package simulator

// Package batch makes one call of many tasks that are due at once.
//
// A task of a timer with callback.batch waits in a lane of its class (fair.BatchLane): the app,
// the target, the flow keys, and a hash of all else of the callback but its body
// (engine.Timer.BatchClass). What follows is for one call:
//
//	place    the lane gets a place for a call, for its next task. It gets no other until that
//	         call has taken its tasks, and none while four calls of it are in flight
//	gather   the worker takes what waits in the lane, up to max and 1 MiB. With wait, it waits
//	         for more until so long after the first due, or until the call is full
//	begin    each task begins by itself (resident.Memory.Begin): its number, its note in the
//	         journal, overlap, age and staleness. A task that cannot go with the others (another
//	         callback of the same hash, no room for its body) is queued again
//	note     at_most_once: one sync of the journal for all of them, or in a cluster one settle
//	call     one request, signed as one message. When its first byte can be written, each task
//	         passes its own gate (gate.go): one that was cancelled, or is another node's by now,
//	         is left out, and the request is written anew without it
//	end      each task ends with the outcome of the call, or with its own where the answer names
//	         it among failures (resident.Attempt.End): result, retry, history
//
// A crash at any place leaves each task as a call of its own would have left it. To the queue
// and its gates, and to the breaker of a key, a batch is one call. It is a bad one if more than
// half of its tasks failed in a way that counts there, and closes the key for the longest time
// that a task was answered.
package batch

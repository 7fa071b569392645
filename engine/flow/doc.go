// Package flow decides when a call may be made that names a key with a limit.
//
// A Limit says what a key allows; a Gate is one key as it stands: its bucket, the places
// taken, a pause, a cooldown and a breaker. A gate reads no clock: an instant is an
// argument, as the time since the process started, which no step of the clock changes.
//
//	Ask    → may a call be made now; if not, by what it is held, and when to ask again
//	Take   → a call is handed to a worker
//	Depart → its first byte leaves (departure.go)
//	Give   → the call has ended
//
// A gate is not for several goroutines at once: the queue that asks it has a lock.
package flow

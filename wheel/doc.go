// Package wheel holds values until their time comes.
//
// Think of a clock. What is due lies where a hand will pass, so adding and removing
// cost the same however many values wait, and nobody ever looks through them all.
//
//	level              one slot      one turn      what a slot holds
//	tick               1 ms          64 ms         a cohort: all values due in that millisecond
//	clockwork, hand 1  1 ms          4.096 s       calls for drawers
//	clockwork, hand 2  4.096 s       4 h 39 m      calls for drawers
//
// A cohort is a ring of nodes in a slab. 64 neighbouring ticks are a drawer: one
// machine word says which of them are occupied. Drawers are found by a map, and
// kept in order by a heap. The clockwork is github.com/RussellLuo/timingwheel. It
// calls a little before a drawer's first tick; then the hand, the goroutine inside
// Run, sleeps exactly to that tick and hands its cohort on.
//
// # An example
//
// At 12:00:00.000 somebody adds a value due in 7.300 s, and then 5,000 more due in
// the same millisecond. The first opens the drawer of 7.296–7.360 s (let the
// drawers count from noon), takes slot 4 in it, and has the clockwork armed for
// 7.296: 4 ms ahead. That is more than one turn of hand 1, so it waits on hand 2,
// in the slot of 4.096–8.192 s. The others join the ring of slot 4, and the
// clockwork does not hear of them. At 4.096 hand 2 moves the one call to hand 1, at
// 7.296 it calls, the hand wakes up, sleeps 4 ms on its own thread to within some
// 0.03 ms, and fires 5,001 values in five batches.
//
// # Why so
//
// The obvious way is one library timer a value. The library starts a goroutine for
// each that fires, moves each down a level by itself, and may fire it a
// millisecond early. And it can lock itself up for good (its issues #53 and #54).
// So it gets at most one timer for 64 ms that hold something, and is not trusted:
// what waits is known here, in order, and the hand gets up 1 ms before the earliest
// due, call or no call. What a call saves is that each Add would have to wake the
// hand. A clockwork that was late may cost a value up to 1 ms; one that is wedged
// may cost what is added within the nap of 250 ms that the hand takes, until it
// looks up. It is thrown away when it has missed a call and none came for 100 ms
// more, and whenever the wall clock was set; a new one is armed from the drawers.
// One that has wedged leaves at most three goroutines and 0.5 MB behind
// (Stats.Stuck), and each in a row has to be silent twice as long.
//
// When idle the Go runtime waits in whole milliseconds, so the last stretch is slept
// in the kernel, on a thread (sleep_linux.go); elsewhere, and in the bubbles of
// testing/synctest, by the runtime.
//
// A million values due in one millisecond take seconds to hand on, and what is due in
// the next one need not wait for them: between two batches of such a crowd those that
// are due behind it have as many values in turns (turn in hand.go).
// Beside 300,000 at once, 1,000 other fires a second had a p99 of 1,444 ms without that
// (bench, BenchmarkNoisyApp).
//
// Where more is due than the machine has time for, every value is late, for values are fired
// in the order of their dues. OnLate tells the caller, who can then leave a core to the wheel.
//
// # What it costs
//
// AMD EPYC, 2 cores, Go 1.26.8, nothing else running (one run each):
// go test -run xxx -bench . -benchtime 1x ./wheel
//
//	1,000,000 values due within            1 s     5 min    1 h
//	Add                                    40 ns   139 ns   217 ns
//	  timingwheel's AfterFunc              240 ns  261 ns   268 ns
//	memory besides the value               25 B    29 B     62 B
//	  timingwheel                          97 B    97 B     97 B
//	lateness p99, all due within 1 s       0.26 ms
//	  timingwheel, 4,096 slots of 1 ms     5.84 ms
//	  timingwheel, 20 slots                351 ms
//
// With both cores taken by other builds (load 5, median of 5): 29 ms against 484 ms.
// Idle, with none or 1,000,000 waiting, it takes 0.06 % of a core.
//
// Thinly spread values cost more: a drawer has 288 bytes, and its call some 200.
//
// # The contract
//
//   - A value is handed to fire exactly once, unless Remove said true.
//   - Never early: on the wall clock, floored to the millisecond, due has been reached.
//   - Low is exact: what persists progress may rely on it.
//   - When the wall clock is set forward, what that makes due fires within 250 ms,
//     after OnStep; until then IsSet is true. When it is set back, what waits, waits for the new clock.
//   - fire is called by one goroutine. While it blocks nothing else fires.
package wheel

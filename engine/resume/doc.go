// Package resume decides what becomes of the dues that a pause held, when somebody has ended
// the pause and said that not all of them are called (engine.Backlog).
//
//	an object is written: dues up to T, skip or latest ──► resident.Backlogs, and the gate opens
//	Begin, a task comes into memory, unfold             ──► a due up to T waits: its timer is to be decided
//	here, timer by timer: claim → freeze → read its rows → store → memory → thaw
//
// The object has the decision, and leaves it behind when it is deleted (engine/limit), so that nothing is lost by a crash at any place: until it has
// been decided about a timer, none of its dues up to T begins. What was begun ends as usual:
// whoever has had an attempt, or may have had one, is called on.
//
//	one-shots, and tasks without a row, or later than the watermark   a record each, as any task that ends
//	rows up to the watermark, in memory or not, and ranges            one record for each run of dues, in the
//	                                                                  transaction that removes the rows
//	dues of a range beyond the watermark                              become rows, and are decided with them
//
// The watermark is the border, for a start derives what is later from the plan, whatever
// records there are. The last due that waits under latest is called after all else of its
// timer was stored, or noted in the journal before it: a start finds the same last due.
package resume

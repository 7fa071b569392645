// Package fair hands waiting work to bounded workers, fairly.
//
// A place is the right to have one call in flight; a queue has some thousands of
// them. A lane holds the items of one app for one target, with one set
// of flow keys. Three things decide
// which lane gets a place:
//
//   - Limits: calls in flight in all, of one app and to one target. The limit of
//     a target follows the target (limit.go): 48 at first, more when its answers
//     take their time, half as many when calls time out, one probe at last.
//
//   - Turns: the lane that costs least goes first. Its cost is how many calls the
//     lane and its app have in flight. So apps share the places, each getting at
//     least half as many as any other that wants more, and the lanes of an app
//     share evenly. Within a lane the order is by priority with ageing, then by
//     arrival.
//
//   - A reserve: a lane gets a place only while enough others are free for what
//     it costs. So those who hold much stop before those who hold little find
//     nothing, although no call can be taken back.
//
// How much is enough depends on the pool that the lane stands in (share.go). Cost
// and calls are of that pool:
//
//	pool       lanes                                          get a place while
//	first      without a call in flight, and no timeout       cost < 4 × free
//	           since the target's last answer
//	answering  of other targets that answer                   cost < 8 × (free − places/16)
//	silent     of targets that have not answered yet, or      cost + calls < free
//	           not for too long
//
// So silent targets hold, all together, at most half of the places and one each,
// whatever they do, however many they are, and before the first of their calls has
// timed out. Targets that answer never take the last sixteenth, where first calls
// find room. With 8,192 places:
//
//	lanes that want all they can get     each gets   free
//	1, answering                         6,145       2,047
//	8, answering, an app each            931         744
//	1,000, answering, of one app         6 or 7      1,254
//	1,000, answering, an app each        7 or 8      513
//	1, never answered                    48          8,144
//	1,000, never answered, of one app    3 or 4      4,795
//	1,000, never answered, an app each   4 or 5      3,599
//
// Taking turns alone is not enough: mute targets, which accept a call and never
// answer, keep each place for a timeout of, say, 15 s, and however fair the turns
// are, none is free for others meanwhile.
//
// Before a lane stands for a place, every gate that it names has to admit its next item: a
// pause of its app or of all apps, the limits of its target and of its flow keys (gate.go; rule.go makes
// the gates of the rules in force, breaker.go says which gates a breaker holds). A lane that is
// held takes no place, and stands again at the ms at which its gate admits a call.
//
// A backlog that a former process left has a lane of its own beside that of the same app and
// target (BacklogLane): so what comes on time has turns, too. While calls begin at the target
// that are on time, the lane of a backlog begins slowly, and takes at most half of the places
// (backlog.go).
//
// A gate with one place, which a task keeps until its end, keeps order: its items go by their dues, whatever
// their lanes, and none goes before what is due earlier and is not in the queue yet (order.go).
//
// Tasks that may share a call have lanes of their own (BatchLane). A place is for a call there:
// the worker that has it takes more items of the lane. One call at a time takes its items, and
// at most four are in flight, so that those which come meanwhile fill the next. A gate counts a
// call, whatever the number of its items; where items keep places of a gate, they go one by one.
//
// The queue can take turns only between items that have come, and all items come from the one
// goroutine of the wheel. While the wheel is late the queue hands nothing out (halt.go). So the wheel has
// a core, and the items that are too many for the machine wait in their lanes.
//
//	Push → Lane (app, target, flow keys) → gates → share (app) → pool → worker
package fair

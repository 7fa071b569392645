// Package engine defines timers, tasks and outcomes, the seams to the tiers, and the
// stored forms. The packages below it fire tasks on time, at least once.
//
// # The rooms
//
//	engine            timers, tasks, attempts, outcomes; Cold, Warm, Journal, Members, Mirror; the stored forms
//	engine/plan       when a definition is due                                        (pure)
//	engine/policy     what becomes of a due: misfire, retry, catch-up                 (pure)
//	engine/verify     recomputes what should have fired and compares that with history
//	engine/flow       when a call may be made that names a key with a limit           (pure)
//	engine/limit      the objects of flow keys and pauses, as rules of the queue
//	engine/resume     decides what becomes of the dues that a pause held
//	engine/quota      what an app may have and do
//	engine/fair       hands waiting work to bounded workers, fairly
//	engine/allot      has the limits of flow keys hold for several nodes together
//	engine/batch      makes one call of many tasks that are due
//	engine/inspect    what readers ask
//	engine/resident   timers and tasks in memory
//	engine/object     what users configure beside timers, in memory
//	engine/alert      tells people of tasks that failed, of late calls and of states
//	engine/secret     the values that callbacks name and nobody reads back
//	engine/process    whether the process starts, serves or ends, and its stages
//	engine/cluster    which node owns which shard, and until when a node may call (serve --cluster)
//	engine/change     makes the changes that callers ask for
//	engine/scheduler  fires on time: wires the stages, one file a stage
//	engine/failpoint  where a trial may stop the process
//
// engine imports none of our packages. plan and policy read no clock and no store: an
// instant is an argument. The tiers, the journal and the API import engine; only
// cmd/xtimer, the API and bench import the scheduler.
//
// # The way of a task
//
// Data flows one way, one file a stage. Read the files in this order; those without a folder
// are of engine/scheduler:
//
//	stage      file           what it does
//	────────   ────────────   ─────────────────────────────────────────────────────────────
//	in         change/create.go   validate → resolve → commit in the cold tier → add to memory
//	           change/change.go   replace, disable, delete: freeze → commit → drop
//	           change/cancel.go   what becomes of the dues of a timer that was changed
//	           change/control.go  Put, Replace, Delete, RunNow, Redrive in terms of those two
//	           change/enable.go   Enable, Disable, likewise: from when dues count again
//	           change/spent.go    which dues are not called again when the clock was set back
//	           change/reset.go    the clock was ahead: what rests is called by the clock as it is
//	           change/bulk.go     many of these in one operation
//	           ended.go       of a change: the rows that one commit cannot take, in pieces after it
//	ahead      migrator.go    warm → wheel (the next minutes); owed → memory
//	           fill.go        cold → warm (the next hour), and what the warm tier lost
//	           admit.go       an entry becomes a timer in memory
//	           resident/deferred.go  … or waits outside, where its lane is held and has enough in memory
//	memory     engine/resident  the timers and tasks that are in memory, in 256 shards; state.go draws a task's way
//	due        resident/add.go    wheel → tasks; each timer's next due back into the wheel
//	           resident/room.go   how much of a lane may wait in memory
//	           resident/lanes.go  what of a lane waits in memory; the rest are rows, see refill.go
//	           resident/order.go  what of a key whose tasks go in order is due, and not in the queue
//	           engine/fair    fair turns: limits per target and app, priority with ageing
//	call       bodies.go      the body of a call is read when the call is near
//	           executor.go    begin → journal → call; policy/retry.go: what follows
//	           engine/batch   likewise for many tasks at once: take those that wait → begin each → one call → end each
//	           resident/attempt.go  the last look before the first byte; the end of an attempt
//	after      settle.go      settle: results, owed, watermarks, in one transaction; then forget
//	start      start.go       a process that is alone takes all shards, and recovers them before it fires
//	           gain.go        a node among several recovers the shards that it gains, while it fires
//	           cede.go        … and settles those that it gives to another, and takes them out of memory
//	           recover.go     journal + plan + owed → decided and settled before the first call
//	           recover_plan.go … the dues that the plans derive, shard by shard
//	           rewind.go      … when the clock was set back since
//	           misfire.go     timers that are behind, by a step of the clock, a stall or an outage,
//	                          are caught up with in one decision each; policy/misfire.go decides
//	late       backlog.go     owed rows → memory
//	           refill.go      … of the lanes that had no room, a page of each in turns
//	           unfold.go      … ranges of dues, some of each timer in turns
//	           engine/resume  the dues that a pause held, when not all of them are to be called
//	watch      audit.go       is what must be in memory there?  janitor.go: retention
//	           unsettled.go   what waits for the cold tier, and its bounds
//	look       engine/inspect  view.go, upcoming.go, tasks.go, failures.go, coming.go, stats.go: what
//	           readers ask; tally.go counts, and subscribers.go tells those who watch
//
// # What is true, and where
//
// The cold tier is the truth, the journal is the truth for the time since the
// last settle; the warm tier, the roster and the wheel are caches that a start
// rebuilds. Per shard there is a watermark W:
//
//	an occurrence of the definition in force is finished ⇔ due ≤ W and it is not in owed
//
// A row of owed stands for one due, or for a range of dues of one timer. A timer that is
// behind (its lane has no room, or there was a stall) has one row for all its dues from
// some due on: a due that comes while its timer is behind costs no task, no row and no
// place in the wheel (unfold.go). Dues of a range that are in memory have one row together, until
// the last of them has a record (resident/state.go).
//
// so a fire that goes well costs two lines in the journal and two keys in
// history, and nothing is written ahead: a timer every 100 ms costs no row. The
// invariant that every step keeps, and that a crash at any place leaves true:
//
//	for each acknowledged timer and each unfinished occurrence o of it:
//	W < due(o) and the plan derives o, or o ∈ owed
//
// What could break it, and what keeps it:
//
//	W overtakes a due that memory does not know yet    pins (resident/pins.go); W ≤ memory.Loaded; W ≤ wheel.Low
//	W overtakes a due that is queued or in a call      history puts it into owed in the same transaction
//	a result is stored but not covered by W            history settles only results with due ≤ W or in owed
//	a due that is missed or skipped after a step of    a start reads the records that begin later than W, and W never stands
//	the clock is recorded before W passes it           between the dues of one record (leaps in resident/pins.go)
//	the journal forgets too soon                       a task knows its first record that nothing stored makes
//	                                                   needless; what is before all of those goes after the settle
//	a create slips between two scans                   horizons are raised before a scan; creates look again after
//	a change races with a send                         both take the shard's lock, the send right before its first byte:
//	                                                   Frozen, or Sending, never both (resident/attempt.go)
//	a settle races with a change                       a change waits for the settle that names its tasks
//	a settle races with the row of a begin             a settle names no task that intends, the watermark does not pass
//	                                                   it, and an intent waits for a settle that named it before
//	a read from a tier is older than a change          resident.Reads: a change, and a row that is removed or whose task
//	… or than a row's task                             leaves memory, is noted while a read is under way; what is older than
//	                                                   a note is read again
//	the warm tier tells a former definition            each change tells it (Update) before its claim ends, and then it tells
//	                                                   that one or none
//	the clock is set while a change is being made      forward: it is made again; back: see Pins.since
//	a shard leaves while something of it comes         resident/cede.go: a closed shard takes nothing in; what was read
//	                                                   before a shard came back is read again
//	the warm tier tells what another node has changed  the minutes of a gained shard are filled anew, and definitions of
//	                                                   a shard that was given away are read from the cold tier
//	two processes have one cold tier                   Take moves the fences on: the former one cannot settle, and ends;
//	                                                   before, it has stopped calling (see Two processes)
//
// # A crash, step by step
//
//	before the create's commit      not acknowledged, not there
//	after it, before memory         the plan derives it at the next start
//	due, before Begin               W < due, or owed: called at the next start, Redelivered
//	Begin, before or in the call    the same; at_most_once: the synced Begin makes it unknown
//	answered, Finish not synced     called again with the same key: the one repeat that cannot be helped
//	Finish synced, not settled      the journal is replayed into history
//	settled, journal not forgotten  replayed again, which changes nothing
//
// # Two processes
//
// A cold tier that another process may open is a Shared (MySQL). A process asks it every
// 400 ms whether the timers are still its own (process/ownership.go). Yes holds for 1.2 s
// from the start of the question, by the clock on which more time has passed; a call looks
// whether one holds before it begins and right before its first byte, and waits for an
// answer otherwise. So a process that was stopped makes no call by what it knew before.
// While the tier cannot be asked, calls go on: one process must outlive an outage, and
// one that is cut off from the tier cannot know of another.
//
// Who takes the timers over first notes a claim, and waits: until the owner has seen the
// claim, stopped calling, settled and closed; or for 3 s, after which no call by a yes from
// before the claim can begin. Then it moves the fences, and recovers as at any start. It
// does not wait for an owner that closed, or whose data directory it has locked.
//
// # Several nodes
//
// Nodes that share a cold tier have each some of the shards (engine/cluster). A shard is of
// one life of one node, under a fence. That life alone reads what is due and owed of its
// timers, calls them, settles and changes them, and makes the ids of new timers in it;
// every other node refuses them (ErrElsewhere). A life calls while its lease is fresh, and
// ends as a whole when another life has any of its shards that it has not given. It gains
// shards while it fires (scheduler/gain.go), and gives shards to a node that joins, or all
// when it is stopped (scheduler/cede.go). Before a call of an at_most_once task
// the cold tier has a row that says that the call has begun (resident/intent.go), stored beside
// the settles: whoever takes the shard over has no journal of the node. What a life has
// finished and not settled is copied to the mirror each 20 ms (cluster/mirrored.go). Who takes the shards of a life that
// did not give them reads its mirror, and calls again what was under way, and what was finished
// in the last 50 ms; where there is no mirror, or where it has lost something, more is called
// again. A process that is alone has all
// shards, and none of this costs it more than the test of a bit.
//
// # Time
//
// One reading of the wall clock (Config.Now, handed to the wheel; one of several nodes corrects its
// clock, see cluster/clock.go); instants are Unix ms everywhere, and an argument to every pure function of plan and policy. In tests testing/synctest is the clock.
//
// # Locks
//
// A shard's mu may be held while taking queue.mu, the wheel's, the journal's
// buffer's or a hold's; never the other way round, never two shards' at once,
// and never over a call to a tier.
//
// # Where this differs from what was planned
//
// The journal is a log of groups, not one Pebble key a task (see wal). A retry
// that is minutes away leaves memory and is read from owed when its minute is
// loaded, instead of going through the warm tier: owed has an index by
// not-before in any case, and the warm tier stays a pure function of the plan.
package engine

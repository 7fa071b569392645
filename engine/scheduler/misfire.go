package scheduler

import (
	"context"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
	"xtimer/engine/process"
	"xtimer/engine/resident"
)

// maxDecided is how many rows and records are stored in one transaction, and those of
// one timer more: one of MySQL has ten seconds, in which 140,000 were too many; a variable for tests.
var maxDecided = 20_000

// records encodes tasks for a settlement.
func records(ts []*engine.Task) []engine.Record {
	rs := make([]engine.Record, len(ts))
	for i, t := range ts {
		rs[i] = engine.Record{Key: t.Key, Status: t.Status, Encoded: engine.EncodeTask(t)}
	}
	return rs
}

// endedNow encodes tasks that are stored as ended now, and says so in them: a reader that
// comes back asks history for what has ended since, so none may be stored with an instant
// that was long ago.
func (e *Scheduler) endedNow(ts []*engine.Task) []engine.Record {
	now := e.now()
	for _, t := range ts {
		t.Ended = now
	}
	return records(ts)
}

// awaitDecisions returns when fewer than most timers wait for their decision, or ctx has ended:
// those that wait are in memory.
func (e *Scheduler) awaitDecisions(ctx context.Context, most int64) {
	for ctx.Err() == nil && e.memory.Late.Waiting.Load() >= most {
		process.Sleep(ctx, 5*time.Millisecond)
	}
}

// decideLate decides what was added until ctx ends. What is not decided then keeps its
// pin, so that the next start decides it.
func (e *Scheduler) decideLate(ctx context.Context) error {
	late := &e.memory.Late
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-late.More:
		}
		list := late.Take()
		var again []resident.LateTimer
		pause := 100 * time.Millisecond // a timer that is being changed is decided after the change
		for len(list) > 0 && ctx.Err() == nil {
			var d *resident.Decisions
			d, list = e.memory.Decide(list, e.pieces.of(maxDecided))
			left, err := e.commitDecisions(ctx, d)
			if err != nil && ctx.Err() == nil {
				e.log.Error("cannot store what becomes of dues that a step of the clock or a stall made late; trying again", "error", err)
			}
			if again = append(again, left...); err != nil {
				pause = time.Second
				break
			}
		}
		if again = append(again, list...); len(again) > 0 {
			process.Sleep(ctx, pause)
			late.Return(again)
		}
	}
}

// commitDecisions stores what was decided, takes what is to be called into memory, and lets the
// timers go on. again are those that are to be decided again.
func (e *Scheduler) commitDecisions(ctx context.Context, d *resident.Decisions) (again []resident.LateTimer, err error) {
	if d.IsEmpty() {
		return d.Done(), nil
	}
	s := &engine.Settlement{Owner: e.cfg.Node, Tasks: e.endedNow(d.Records), Owe: d.Rows(), Pay: d.Pay}
	err = e.cfg.Cold.Settle(ctx, s)
	if e.pieces.heard(len(s.Tasks)+len(s.Owe)+len(s.Pay), err); err != nil {
		return d.Failed(), err
	}
	e.memory.NoteRemoved(d.Pay)    // first: the rows of d.Owe that have their keys are new
	read := e.memory.Reads.Begin() // before a change that waits for it goes on
	defer read.End()
	e.tally.Decided(d.Records)
	d.Stored()
	if err := e.resumeAll(ctx, d.Owe, read, false); err != nil {
		return nil, err // the process ends, and the pins stay
	}
	return d.Done(), nil
}

// fromRecords notes which dues later than the watermarks are recorded as missed or skipped.
// commitDecisions stores such a record before the watermark passes its dues, and they have no
// row. No record has dues on both sides of the watermark, see Memory.Decide.
//
// The index of missed dues has all failures. A read of 1,000,000 took 3.4 s in tier/local, and of
// a shard without results the watermark may be 10 s old.
func (r *recovery) fromRecords(ctx context.Context, lowest int64) error {
	for _, f := range []engine.TaskFilter{{Statuses: []engine.TaskStatus{engine.Missed}, From: lowest + 1}, {Misfires: true, From: lowest + 1}} {
		err := r.e.EachRecord(ctx, f, func(t *engine.Task, _ bool) {
			if k := t.Key; r.of.Has(k.Timer.Shard()) && k.Due > r.watermark(k.Timer) {
				r.recorded[k.Timer] = append(r.recorded[k.Timer], [2]int64{k.Due, max(k.Due, t.DueLast)})
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// livedMost is by how much (ms) the watermark of a shard may lie behind the time to which its owner lived: the watermark
// waits for open tasks, for up to 15 s (resident's settleWait), and is stored every few seconds.
const livedMost = 20_000

// lived is up to when the former owner of a timer's shard lived, as far as watermarks tell: in other shards no task waited.
func (r *recovery) lived(id engine.TimerID) int64 { return min(r.newest, r.watermark(id)+livedMost) }

// hold owes the dues of a timer in open spans that came while the former owner of the shard lived, as held: a limit may
// have held them, and a due that was held before a start is no misfire. rest are the others.
func (r *recovery) hold(d *policy.Triage, t *engine.Timer, p *plan.Plan, open policy.Spans) (rest policy.Spans) {
	lived := r.lived(t.ID)
	for _, s := range open.Cut(lived) {
		if s[1] <= lived {
			d.Hold(t, p, s[0], s[1])
		} else {
			rest = append(rest, s)
		}
	}
	return rest
}

// onStep hears from the wheel that the wall clock was set by delta.
func (e *Scheduler) onStep(delta time.Duration) {
	e.memory.Steps.Add(1)
	now := e.now()
	e.metrics.clockSteps.Inc()
	e.log.Warn("the wall clock was set", "by", delta)
	if delta > 0 {
		resident.Raise(&e.memory.Stepped, now)
	} else {
		e.memory.SetBack()
	}
	if delta.Milliseconds() > policy.MisfireAfter {
		e.process.Go(e.memory.Step(e.memory.Wheel.Looked(), now))
	}
	e.migrator.wake()
	e.process.Go(e.cfg.Objects.ClockSet)
}

package resident

import "xtimer/engine"

// A shard may be given away while a call of it is under way. The row of its task says that the
// call has begun, and is not to be tried before the call must have ended. When it ends, the
// node that made it tells the owner of the shard, who goes on from there:
//
//	who gave    CaptureLast   the row: begun, not before the timeout of the call and a second
//	            End           Ended.Left: the task with the attempt, for the owner
//	the owner   a gain        the row comes into memory: Retrying, and wasUnended
//	            Learn         the attempt has ended: the task is done, or waits for its next one
//
// Whoever is not told makes the call again.

// Learned is what became of what another node told.
type Learned uint8

const (
	LearnedNow   Learned = iota // the task stands as the other node has told
	LearnedLater                // the task is not in memory, or its timer is being changed: it may be told again
	LearnedLate                 // the call was made again, or the task is over
)

// Learn takes what became of a call that another node made and that was under way when it
// gave the shard: the task as it stands since.
func (m *Memory) Learn(x *engine.Task) Learned {
	learned, freed := m.learn(x, m.now())
	if freed != nil {
		m.Enqueue([]*Task{freed})
	}
	return learned
}

func (m *Memory) learn(x *engine.Task, now int64) (l Learned, freed *Task) {
	sh := m.lock(x.Key.Timer)
	defer sh.mu.Unlock()
	t := sh.tasks.find(x.Key)
	switch {
	case sh.stay != here, !m.Owned().Has(x.Key.Timer.Shard()), sh.changing[x.Key.Timer].over != nil:
		return LearnedLater, nil
	case t == nil || t.timer.frozen || t.timer.deciding:
		return LearnedLater, nil
	case t.state != Retrying || t.past != wasUnended || t.Generation != x.Generation || t.Base != x.Base || x.LastAttempt() != t.LastAttempt()+1:
		return LearnedLate, nil
	}
	t.Attempts, t.Lateness, t.past = x.Attempts, x.Lateness, noPast
	if t.Since <= sh.repeats {
		t.past = mayRepeat
	}
	if x.Status.Final() {
		return LearnedNow, m.conclude(sh, t, x.Status, x.Reason, now)
	}
	m.Wheel.Remove(t.handle)
	t.Status, t.NotBefore = engine.Retrying, x.NotBefore
	t.handle = m.Wheel.Add(t.NotBefore, Item{t.Key.Timer, t.Key.Due})
	t.touch()
	t.inJournal(m.cfg.Journal.Finish(engine.EncodeTask(&t.Task)))
	return LearnedNow, nil
}

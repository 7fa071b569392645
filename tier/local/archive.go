package local

import (
	"xtimer/engine"
)

// The row of a one-shot is not written at its end: an entry in the index of
// finished timers beside a row that says enabled makes it finished. So archiving
// reads no rows, and costs three small writes.

// mayBeEnded reports whether a timer may be archived although its row is unchanged.
func mayBeEnded(t *engine.Timer, highest int64) bool {
	return t.Status == engine.Enabled && derived(t) && lastDue(t) <= highest
}

// finished is the timer as archiving left it.
func finished(t *engine.Timer) *engine.Timer {
	done := *t
	done.Status = engine.Finished
	return &done
}

// asEnded is the timer with the status that the index says.
func (w *view) asEnded(t *engine.Timer) (*engine.Timer, error) {
	if !mayBeEnded(t, w.highest) {
		return t, nil
	}
	v, err := w.get(timeKey(nil, kindEnded, endedAt(t), t.ID))
	if v == nil || err != nil {
		return t, err
	}
	return finished(t), nil
}

// asEnded is that of a reader, for the committer.
func (g *group) asEnded(t *engine.Timer) (*engine.Timer, error) {
	if !mayBeEnded(t, g.st.highest()) {
		return t, nil
	}
	if g.ended[t.ID] {
		return finished(t), nil
	}
	g.probe = timeKey(g.probe[:0], kindEnded, endedAt(t), t.ID)
	v, err := g.look(g.probe)
	if v == nil || err != nil {
		return t, err
	}
	return finished(t), nil
}

// highest is the highest watermark of all shards.
func (st *state) highest() (w int64) {
	for i := range st.shards {
		w = max(w, st.shards[i].Watermark)
	}
	return w
}

// over reports whether the last due of a timer is settled. It must not be asked of
// a timer without an end.
func over(st *state, t *engine.Timer) bool {
	return lastDue(t) <= st.shards[t.ID.Shard()].Watermark
}

// archive marks a timer as finished if its last due is settled and no task of it is
// owed. The version stays as it is: nobody changed the timer.
func (g *group) archive(t *engine.Timer) (bool, error) {
	if t.Status != engine.Enabled || !over(g.st, t) || t.ValidFrom > g.st.clock {
		return false, nil
	}
	owes, err := g.owes(t.ID)
	if owes || err != nil {
		return false, err
	}
	b, err := g.bound(t)
	if err != nil {
		return false, err
	}
	done := finished(t)
	n := len(g.buf)
	g.buf = engine.AppendTimer(g.buf, done)
	g.store(t, done, g.buf[n:len(g.buf):len(g.buf)], b)
	return true, nil
}

// archiveEntry archives the timer of an entry of the index of last dues, if it
// is finished.
func (g *group) archiveEntry(k []byte) error {
	due, id := readTime(k[1:]), readID(k[7:])
	if due > g.st.shards[id.Shard()].Watermark {
		return nil
	}
	v, err := g.look(k)
	if v == nil || err != nil {
		return err // changed since it was listed
	}
	isDerived, updatedAt, app, err := readLast(v)
	if err != nil {
		return damaged(k, err)
	}
	if _, touched := g.timers[id]; touched || !isDerived {
		t, err := g.timer(id)
		if err == nil && t != nil && lastDue(t) == due {
			_, err = g.archive(t)
		}
		return err
	}
	w, buf := endedEntry(g.buf, max(due, updatedAt), id, app)
	n := len(buf)
	buf = appendID(statusKey(buf, engine.Enabled, string(app)), id)
	g.buf = buf
	if owes, err := g.owes(id); owes || err != nil {
		return err
	}
	g.delete(k)
	g.delete(buf[n:len(buf):len(buf)])
	g.put(w.key, w.val)
	g.ended[id] = true
	g.st.stats.timers[engine.Enabled]--
	g.st.stats.timers[engine.Finished]++
	return nil
}

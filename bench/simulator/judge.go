package simulator

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"xtimer/engine"
)

// slack is how close to the end a due may be and not be over.
const slack = 3 * time.Second

// judge holds what was called, answered and recorded against what was asked for.
func (m *machine) judge() Outcome {
	out := Outcome{Calls: len(m.calls), Lives: m.born}
	if m.left != nil {
		m.hold(m.left, &out)
	}
	out.Broken, out.Trace, out.Steps = m.broken, m.log.String(), m.did
	return out
}

func (m *machine) hold(r *remains, out *Outcome) {
	timers := m.match(r.lives)
	if !m.clocks { // nodes make ids in shards of their own, each by its clock
		m.holdIDs()
	}
	m.holdMute()
	for _, k := range r.tasks {
		if t := timers[k.Key.Timer]; t != nil {
			t.records = append(t.records, k)
		} else {
			m.wrong("a record of %s, which is no timer", k.Key)
		}
	}
	upTo := r.wall - slack.Milliseconds()
	for _, l := range r.lives {
		t := timers[l.ID]
		if len(t.versions) == 0 {
			continue
		}
		slices.SortStableFunc(t.records, byDue)
		if !m.forward(end{}) {
			t.rests = r.resting(t, upTo)
		}
		t.blocker, t.blocked = t.waits(upTo)
		m.complete(t, upTo)
		m.holdRecords(t, upTo, out)
		m.holdCalls(t)
		m.holdOverlap(t)
		m.holdOrder(t)
	}
	m.check(timers, upTo)
	for _, o := range r.owed {
		if t := timers[o.Key.Timer]; t != nil && t.blocked && o.Task == nil {
			continue
		}
		if o.NotBefore <= upTo && o.To == 0 { // a range without a due in it goes with the next due
			m.wrong("%s is owed and nobody pays: %+v", o.Key, o)
		}
	}
	for i, sh := range r.shards {
		if sh.Watermark < upTo {
			m.wrong("the watermark of shard %d stands at %s", i, stamp(sh.Watermark))
			break
		}
	}
	slices.Sort(out.Final)
}

func (t *timer) name() string { return t.versions[0].Name }

// holdIDs: the id of a timer is greater than those of all timers that were made before it
// was asked for, whatever the clock did.
func (m *machine) holdIDs() {
	var made []*request
	for _, rs := range m.asked {
		for _, r := range rs {
			if r.state == done && !r.same && r.view.Timer != nil && r.view.Version == 1 && (r.Kind == Create || r.Kind == Put) {
				made = append(made, r)
			}
		}
	}
	slices.SortFunc(made, func(a, b *request) int { return cmp.Compare(a.view.ID, b.view.ID) })
	latest := &request{}
	for _, r := range made { // by id
		if latest.sent > r.answered {
			m.wrong("%s: it was made at %v with id %s, and %s, asked for at %v, has none greater", r.Name, r.answered, r.view.ID, latest.Name, latest.sent)
		}
		if r.sent > latest.sent {
			latest = r
		}
	}
}

// waits: tasks of t wait for the retry of one that lies ahead, since the clock was set
// back after its first attempt. It must not be early, and overlap is queue. Where its
// due is ahead, too, it has a row in owed, or the journal alone knows of the attempt.
func (t *timer) waits(upTo int64) (blocker int64, blocked bool) {
	if t.versions[len(t.versions)-1].Overlap != engine.OverlapQueue {
		return 0, false
	}
	blocker = engine.MaxDue
	for due := range t.rests {
		blocker = min(blocker, due)
	}
	for _, due := range slices.AppendSeq(slices.Clone(t.refused), maps.Keys(t.calls)) {
		if k := t.final(due, 0); due > upTo && (k == nil || !k.Status.Final()) {
			blocker = min(blocker, due)
		}
	}
	return blocker, blocker < engine.MaxDue
}

func (t *timer) eraOf(generation uint32) *era {
	for _, e := range t.eras {
		if e.first.Generation == generation {
			return e
		}
	}
	return nil
}

func (t *timer) all(is func(version) bool) bool {
	return !slices.ContainsFunc(t.versions, func(v version) bool { return !is(v) })
}

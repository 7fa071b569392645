// Package verify recomputes which dues should have fired and compares them with history.
package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"xtimer/engine"
)

// Request is what is to be verified: the dues in [From, To) of all timers,
// or of one app's.
type Request struct {
	From, To int64 // Unix ms
	App      string
	// Late is the lateness of a first attempt beyond which it is a finding; 0: none.
	Late time.Duration
	// Sampled: history keeps only some of the successes.
	Sampled bool
}

// Verdict is what a verification went through and found.
type Verdict struct {
	From, To int64
	Timers   int64
	Dues     int64 // that must be over by now
	Records  int64
	Open     int64 // dues that are owed, or later than the watermark: not over, and not lost
	// Unkept are records of timers of which nothing else is kept.
	Unkept int64
	Found  [findingKinds]int64 // by kind, in dues
}

// Failed reports whether there is a finding that is a failure.
func (v *Verdict) Failed() bool {
	for k, n := range v.Found {
		if n > 0 && FindingKind(k) != Unproven {
			return true
		}
	}
	return false
}

// Online verifies a cold tier that an engine runs on, at now. It calls pace after each
// piece of work with the time that the piece took, so that the caller can slow it down.
func Online(ctx context.Context, cold engine.Cold, v Request, now int64, retention time.Duration, pace func(worked time.Duration), tell func(*Finding) error) (Verdict, error) {
	g := &ledger{Request: v, cold: cold, tell: tell, sampled: v.Sampled, pace: pace}
	return g.verify(ctx, now, retention)
}

// Offline verifies at now a cold tier that no engine runs on. Retention is
// for how long that engine kept history. Only what history has can be late: what
// is owed or unknown may be in the engine's journal, which is not read.
func Offline(ctx context.Context, cold engine.Cold, v Request, now int64, retention time.Duration, tell func(*Finding) error) (Verdict, error) {
	g := &ledger{Request: v, cold: cold, tell: tell, sampled: v.Sampled, stopped: true, pace: func(time.Duration) {}}
	return g.verify(ctx, now, retention)
}

// reckoned is for how long "as far back as history goes" may be under way.
const reckoned = minute

const (
	minute   = int64(60_000) // ms
	pageSize = 512           // timers read at a time
)

// Check finds what is wrong with a request at now, for a history that is kept for retention,
// and moves From to where history begins.
func (v *Request) Check(now int64, retention time.Duration) error {
	oldest := now - retention.Milliseconds()
	switch {
	case v.To <= v.From:
		return engine.Invalid("to", "out_of_range", "must be later than from")
	case v.From > now:
		return engine.Invalid("from", "out_of_range", "must not be in the future")
	case v.From < oldest-reckoned, v.To <= oldest:
		return engine.Invalid("from", "older_than_history", "history is kept for %v: dues before %s cannot be verified",
			retention, engine.FormatInstant(oldest))
	}
	v.From = max(v.From, oldest)
	return nil
}

// maxEntries is how many records are held in memory at a time, about 80 bytes
// each; a slice of the window is as long as that allows.
const maxEntries = 1 << 20

// ledger verifies a window, slice by slice from its end, for history is read
// newest first. For each slice it joins, in the order of ids,
//
//	records of the slice    read once, in the order of time, then sorted by timer
//	rows of owed            read once
//	lives                   read page by page
//
// The watermarks are read before the rows, and these before the records: what
// is settled meanwhile is then found in one of them. What still looks wrong is
// looked at again, timer by timer, for a change may have come between; and a run
// of dues in one record may begin before its slice, or reach beyond it.
type ledger struct {
	Request
	cold    engine.Cold
	tell    func(*Finding) error
	pace    func(worked time.Duration)
	sampled bool
	stopped bool // no engine runs
	most    int  // records held at a time; 0: maxEntries

	now    int64 // when it began
	shards []engine.Shard
	// leftOut are the minutes of which history is not whole, in order: read after
	// the watermarks, for what was left out was told with them or before.
	leftOut []int64
	owed    []debt     // by timer and due
	before  engine.Key // where reading history goes on
	ended   bool       // there is no more of it
	read    []entry    // of the slice
	rest    []entry    // read, but of the next slice
	sum     Verdict
}

func (g *ledger) verify(ctx context.Context, now int64, retention time.Duration) (Verdict, error) {
	if err := g.Check(now, retention); err != nil {
		return Verdict{}, err
	}
	g.To, g.now = min(g.To, now+1), now
	g.sum.From, g.sum.To = g.From, g.To
	var err error
	if g.shards, err = g.cold.Shards(ctx); err != nil {
		return g.sum, fmt.Errorf("cannot read the watermarks: %w", err)
	}
	if g.leftOut, err = g.cold.LeftOut(ctx, g.From, g.To); err != nil {
		return g.sum, fmt.Errorf("cannot read the incomplete minutes: %w", err)
	}
	err = g.cold.Owed(ctx, engine.AllShards, -1, engine.MaxDue, func(os []engine.Owed) error {
		for i := range os {
			d := debtOf(&os[i])
			if d.due >= g.To || d.end < g.From {
				continue
			}
			g.owed = append(g.owed, d)
			if os[i].Damaged != nil {
				if err := g.tellDamage(ctx, os[i].Damaged); err != nil {
					return err
				}
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return g.sum, fmt.Errorf("cannot read the pending tasks: %w", err)
	}
	slices.SortFunc(g.owed, func(a, b debt) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.due, b.due)) })
	for to := g.To; to > g.From; {
		from, err := g.slice(ctx, to)
		if err != nil {
			return g.sum, fmt.Errorf("cannot read history: %w", err)
		}
		if err := g.join(ctx, from, to); err != nil {
			return g.sum, err
		}
		to = from
	}
	return g.sum, nil
}

// slice reads the records of the slice that ends at to, and tells where it begins.
func (g *ledger) slice(ctx context.Context, to int64) (from int64, err error) {
	g.read = append(g.read[:0], g.rest...)
	g.rest = g.rest[:0]
	f := engine.TaskFilter{App: g.App, From: g.From, To: g.To}
	for !g.ended {
		started := time.Now()
		ts, next, err := g.cold.Tasks(ctx, f, g.before, 1000)
		if next, err = g.damaged(ctx, g.before, next, err); err != nil {
			return 0, err
		}
		for _, t := range ts {
			g.read = append(g.read, entryOf(t))
		}
		g.before, g.ended = next, next == (engine.Key{})
		g.pace(time.Since(started))
		if n := len(g.read); n >= cmp.Or(g.most, maxEntries) && !g.ended {
			// The slice ends where the last due that is whole begins.
			oldest := g.read[n-1].due
			whole := n
			for whole > 0 && g.read[whole-1].due == oldest {
				whole--
			}
			if whole > 0 {
				g.rest = append(g.rest, g.read[whole:]...)
				g.read = g.read[:whole]
				from = oldest + 1
				break
			}
		}
	}
	slices.SortFunc(g.read, func(a, b entry) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.due, b.due)) })
	g.sum.Records += int64(len(g.read))
	return max(from, g.From), ctx.Err()
}

// lives reads a page of lives. Those that cannot be read are left out, and told of; then
// the page has one life. last is up to where lives were read.
func (g *ledger) lives(ctx context.Context, after engine.TimerID, limit int, tell bool) (ls []engine.Life, last engine.TimerID, err error) {
	ls, err = g.cold.Lives(ctx, after, limit)
	var d *engine.Damage
	for last = after; errors.As(err, &d); {
		if limit == 1 {
			if d.Key.Timer <= last {
				return nil, last, err
			}
			last = d.Key.Timer
			if tell {
				if err := g.tellDamage(ctx, d); err != nil {
					return nil, last, err
				}
			}
		}
		limit = 1
		ls, err = g.cold.Lives(ctx, last, limit)
	}
	if len(ls) > 0 {
		last = ls[len(ls)-1].ID
	}
	return ls, last, err
}

// join goes through all lives with what is known of the dues in [from, to).
func (g *ledger) join(ctx context.Context, from, to int64) error {
	records, owed := g.read, g.owed
	for last := engine.TimerID(0); ; {
		started := time.Now()
		var ls []engine.Life
		var err error
		if ls, last, err = g.lives(ctx, last, pageSize, to == g.To); err != nil {
			return fmt.Errorf("cannot read the timers: %w", err)
		}
		if len(ls) == 0 {
			g.sum.Unkept += int64(len(records))
			return nil
		}
		for i := range ls {
			l := &ls[i]
			n, _ := slices.BinarySearchFunc(records, l.ID, func(x entry, id engine.TimerID) int { return cmp.Compare(x.id, id) })
			g.sum.Unkept += int64(n)
			records = records[n:]
			n, _ = slices.BinarySearchFunc(owed, l.ID, func(d debt, id engine.TimerID) int { return cmp.Compare(d.id, id) })
			owed = owed[n:]
			ev := evidence{
				from: from, to: to, w: g.shards[l.ID.Shard()].Watermark, now: g.now, late: g.Late, stopped: g.stopped, sampled: g.sampled, leftOut: g.leftOut,
				records: head(records, func(x *entry) bool { return x.id == l.ID }),
				owed:    head(owed, func(d *debt) bool { return d.id == l.ID }),
			}
			records, owed = records[len(ev.records):], owed[len(ev.owed):]
			if err := g.timer(ctx, l, &ev); err != nil {
				return fmt.Errorf("timer %s: %w", l.ID, err)
			}
		}
		g.pace(time.Since(started))
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// head is the longest head of a list of which all is so.
func head[T any](s []T, is func(*T) bool) []T {
	for i := range s {
		if !is(&s[i]) {
			return s[:i]
		}
	}
	return s
}

// timer holds one life against its evidence, and looks again where that says
// that something is wrong, or that there is more to look at.
func (g *ledger) timer(ctx context.Context, l *engine.Life, ev *evidence) error {
	if len(l.Versions) == 0 || g.App != "" && l.Versions[0].App != g.App {
		return nil
	}
	j := ev.hold(l)
	beyond := slices.ContainsFunc(ev.records, func(x entry) bool { return x.last >= ev.to })
	// What is unproven alone is so by the million where history is not whole.
	wrong := slices.ContainsFunc(j.findings, func(f Finding) bool { return f.Kind != Unproven })
	if wrong || beyond {
		var err error
		if j, err = g.again(ctx, l.ID, ev); err != nil {
			return fmt.Errorf("cannot read the timer again: %w", err)
		}
	}
	if ev.to == g.To { // the first slice: all lives are gone through for each
		g.sum.Timers++
	}
	g.sum.Dues += j.dues
	g.sum.Open += j.open
	for i := range j.findings {
		f := &j.findings[i]
		g.sum.Found[f.Kind] += f.Count
		if err := g.tell(f); err != nil {
			return err
		}
	}
	return nil
}

// again gathers the evidence of one timer anew: its watermark, its life, its
// rows and its records, in this order, and those that its runs reach over.
func (g *ledger) again(ctx context.Context, id engine.TimerID, was *evidence) (judged, error) {
	shards, err := g.cold.Shards(ctx)
	if err != nil {
		return judged{}, err
	}
	ls, err := g.cold.Lives(ctx, id-1, 1)
	if err != nil || len(ls) == 0 || ls[0].ID != id {
		return judged{}, err
	}
	ev := *was
	ev.w, ev.owed, ev.records = shards[id.Shard()].Watermark, nil, nil
	for after, more := int64(-1), true; more; {
		rows, err := g.cold.OwedPage(ctx, id, after, 1000)
		if err != nil {
			return judged{}, err
		}
		for i := range rows {
			ev.owed, after = append(ev.owed, debtOf(&rows[i])), rows[i].Key.Due
		}
		more = len(rows) == 1000
	}
	if ev.leftOut, err = g.cold.LeftOut(ctx, ev.from, ev.to); err != nil {
		return judged{}, err
	}
	end := ev.to
	for i := range was.records {
		end = max(end, was.records[i].last+1)
	}
	records := func(f engine.TaskFilter, limit int, yield func(entry) (more bool)) error {
		for before, more := (engine.Key{}), true; more; more = before != (engine.Key{}) {
			ts, next, err := g.cold.Tasks(ctx, f, before, limit)
			var d *engine.Damage
			if errors.As(err, &d) && d.Key != (engine.Key{}) && (before == engine.Key{} || d.Key.Compare(before) < 0) {
				next, err = d.Key, nil // it was told of
			}
			if err != nil {
				return err
			}
			for _, t := range ts {
				if !yield(entryOf(t)) {
					return nil
				}
			}
			before = next
		}
		return nil
	}
	err = records(engine.TaskFilter{Timer: id, From: ev.from, To: end}, 1000, func(x entry) bool {
		ev.records = append(ev.records, x)
		return true
	})
	if err != nil {
		return judged{}, err
	}
	// What reaches into the slice is the last scheduled one before it.
	err = records(engine.TaskFilter{Timer: id, To: ev.from}, 10, func(x entry) bool {
		ev.records = append(ev.records, x)
		return x.origin != engine.FromSchedule
	})
	if err != nil {
		return judged{}, err
	}
	slices.Reverse(ev.records)
	return ev.hold(&ls[0]), nil
}

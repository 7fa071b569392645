package simulator

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"xtimer/engine"
	"xtimer/engine/verify"
	"xtimer/tier/local"
)

// slack is how close to the end a due may be and not be over.
const slack = 3 * time.Second

// remains is what is durable when all is over.
type remains struct {
	wall   int64 // Unix ms
	lives  []engine.Life
	tasks  []*engine.Task
	owed   []engine.Owed
	shards []engine.Shard
}

// look reads what is durable, without an engine.
func (m *machine) look() *remains {
	r := &remains{wall: m.now().UnixMilli()}
	ctx := context.Background()
	cache := pebble.NewCache(1 << 20)
	defer cache.Unref()
	s := local.New(local.Config{Dir: "/data/cold", FS: m.disk, Cache: cache, MemTableBytes: 1 << 20})
	fail := func(err error) *remains {
		m.wrong("cannot read what is left: %v", err)
		return r
	}
	if err := s.Open(ctx); err != nil {
		return fail(err)
	}
	defer s.Close()
	for after := engine.TimerID(0); ; {
		ls, err := s.Lives(ctx, after, 1000)
		if err != nil {
			return fail(err)
		}
		if len(ls) == 0 {
			break
		}
		r.lives = append(r.lives, ls...)
		after = ls[len(ls)-1].ID
	}
	for before := (engine.Key{}); ; {
		ts, next, err := s.Tasks(ctx, engine.TaskFilter{}, before, 1000)
		if err != nil {
			return fail(err)
		}
		r.tasks = append(r.tasks, ts...)
		if before = next; before == (engine.Key{}) {
			break
		}
	}
	err := s.Owed(ctx, -1, engine.MaxDue, func(os []engine.Owed) error {
		r.owed = append(r.owed, os...)
		return nil
	})
	if err != nil {
		return fail(err)
	}
	if r.shards, err = s.Shards(ctx); err != nil {
		return fail(err)
	}
	if len(m.steps) > 0 {
		return r // verify knows of no steps
	}
	v := verify.Request{From: m.begin.Add(-23 * time.Hour).UnixMilli(), To: r.wall}
	_, err = verify.Offline(ctx, s, v, r.wall, 7*24*time.Hour, func(f *verify.Finding) error {
		m.wrong("verify: %s: %v of %s to %s (%d): %s", f.Name, f.Kind, stamp(f.Due), stamp(f.DueLast), f.Count, f.Detail)
		return nil
	})
	if err != nil {
		return fail(err)
	}
	return r
}

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
	}
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

// final is the record that covers a due of a generation.
func (t *timer) final(due int64, generation uint32) *engine.Task {
	var run *engine.Task
	for _, k := range t.records {
		if k.Key.Due == due {
			return k
		}
		if k.Key.Due < due && due <= k.DueLast && (generation == 0 || k.Generation == generation) {
			run = k
		}
	}
	return run
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

// resting are the dues of t whose next attempt lies ahead, since the clock was set
// back after the last one: it must not be early either.
func (r *remains) resting(t *timer, upTo int64) map[int64]bool {
	dues := map[int64]bool{}
	for _, o := range r.owed {
		if o.Key.Timer == t.id && o.Task != nil && len(o.Task.Attempts) > 0 && o.NotBefore > upTo {
			dues[o.Key.Due] = true
		}
	}
	return dues
}

// complete: every due that had to be called has one final record (L1).
func (m *machine) complete(t *timer, upTo int64) {
	for _, e := range t.eras {
		must := e.dues(upTo)
		if e.catchMust != 0 && e.start.state == done {
			must = append(must, e.catchMust)
		}
		for _, due := range must {
			k := t.final(due, e.first.Generation)
			switch {
			case due > upTo && (k == nil || !k.Status.Final()): // the clock was set back before it
			case k == nil && t.blocked && due > t.blocker:
			case k == nil:
				m.wrong("%s: due %s (generation %d) is lost: %d calls, and no record", t.name(), stamp(due), e.first.Generation, len(t.calls[due]))
			case !k.Status.Final() && !t.rests[due]:
				m.wrong("%s: due %s is %s still", t.name(), stamp(due), k.Status)
			}
		}
	}
	for due, r := range t.manual {
		if k := t.final(due, 0); r.state == done && due <= upTo && !t.blocked && (k == nil || !k.Status.Final()) {
			m.wrong("%s: the run of %s was acknowledged, and has no end", t.name(), stamp(due))
		}
	}
}

// holdRecords: what a record says is what happened.
func (m *machine) holdRecords(t *timer, upTo int64, out *Outcome) {
	for i, k := range t.records {
		due := k.Key.Due
		calls := t.calls[due]
		bad := func(format string, args ...any) {
			m.wrong("%s: the record of %s says %s %s: %s", t.name(), stamp(due), k.Status, k.Reason, fmt.Sprintf(format, args...))
		}
		last := fmt.Sprintf("%s %v", t.name(), time.Duration(due-m.begin.UnixMilli())*time.Millisecond)
		if k.Count > 1 {
			last += fmt.Sprintf(" to %v ×%d", time.Duration(k.DueLast-m.begin.UnixMilli())*time.Millisecond, k.Count)
		}
		if due <= upTo { // else it may be as well that it does not come any more
			out.Final = append(out.Final, last+" "+k.Status.String()+" "+k.Reason)
		}
		if i > 0 && t.records[i-1].Key.Due == due {
			bad("there are two")
		}
		e := t.eraOf(k.Generation)
		if e == nil {
			bad("generation %d is not stored", k.Generation)
			continue
		}
		taken := slices.ContainsFunc(calls, func(c *call) bool { return c.answer.class == engine.ClassOK })
		answered := func(classes ...engine.Class) bool {
			return slices.ContainsFunc(calls, func(c *call) bool { return slices.Contains(classes, c.answer.class) })
		}
		amo := e.atMostOnce()
		switch k.Status {
		case engine.Succeeded:
			if !taken {
				bad("its target took none of %d calls", len(calls))
			}
		case engine.Failed:
			if !answered(engine.ClassRejected) && !(amo && answered(engine.ClassRetry)) {
				bad("its target did not reject it")
			}
		case engine.Dead:
			switch n := k.LastAttempt() - k.Base; {
			case k.Reason == engine.ReasonAge:
			case k.Reason == engine.ReasonStale:
				m.holdStale(t, k, bad)
			case n < e.fewest():
				bad("after %d attempts", n)
			}
		case engine.Unknown:
			if !amo {
				bad("it is at least once")
			}
		case engine.Cancelled:
			if e.end == nil {
				bad("generation %d is in force", k.Generation)
			}
		case engine.Skipped, engine.Missed:
			m.holdSkipped(t, e, k, bad)
		}
		if taken && k.Status != engine.Succeeded && !m.forgot(t, calls) {
			bad("its target took it")
		}
	}
}

// holdSkipped: a due is not called for a reason that its timer has given.
func (m *machine) holdSkipped(t *timer, e *era, k *engine.Task, bad func(string, ...any)) {
	overlap := func(o engine.Overlap) bool {
		return slices.ContainsFunc(t.versions, func(v version) bool { return v.Overlap == o })
	}
	policy := func(p engine.MisfirePolicy) bool {
		return slices.ContainsFunc(t.versions, func(v version) bool { return v.Misfire.Policy == p })
	}
	last := max(k.Key.Due, k.DueLast)
	switch k.Reason {
	case engine.ReasonOverlap:
		if !overlap(engine.OverlapSkip) {
			bad("its timer does not skip")
		}
	case engine.ReasonQueueFull:
		if !overlap(engine.OverlapQueue) {
			bad("its timer does not queue")
		}
	case engine.ReasonMisfire:
		if !policy(engine.MisfireSkip) && !policy(engine.MisfireLatest) {
			bad("its timer wants all")
		}
		if !m.foundLate(last, 10*time.Second) {
			bad("nothing made it late")
		}
		if !policy(engine.MisfireSkip) && e.end == nil {
			// A later one is called in its place.
			next := e.between(last, m.latest())
			if len(next) == 0 {
				bad("it was the latest")
			}
		}
	case engine.ReasonStale:
		m.holdStale(t, k, bad)
	case engine.ReasonWindow:
		if !m.foundLate(last, 30*time.Second) {
			bad("nothing made it so late")
		}
	default:
		bad("for no reason")
	}
}

// holdStale: a task that is not called for its age has waited for as long as its timer
// says.
func (m *machine) holdStale(t *timer, k *engine.Task, bad func(string, ...any)) {
	if shortest, _ := t.staleAfter(); k.Ended-k.Since <= shortest.Milliseconds() {
		bad("it waited for %d ms, its timer waits for %v", k.Ended-k.Since, shortest)
	}
}

// staleAfter is how long a task waits for its first attempt: by the versions of its timer
// the shortest and the longest time.
func (t *timer) staleAfter() (shortest, longest time.Duration) {
	for i, v := range t.versions {
		waits := cmp.Or(v.StaleAfter, v.Retry.MaxAge)
		if i == 0 || waits < shortest {
			shortest = waits
		}
		longest = max(longest, waits)
	}
	return shortest, longest
}

// holdFresh: what has waited for too long is not called for the first time. An attempt
// that began in time may still wait for its note and its dial.
func (m *machine) holdFresh(t *timer, c *call, bad func(string, ...any)) {
	_, longest := t.staleAfter()
	since := c.key.Due
	for _, e := range t.eras {
		if e.first.Generation == c.generation {
			since = max(since, e.first.ValidFrom) // an instant that was past, or is caught up
		}
	}
	late := c.wall.UnixMilli() - since
	if c.attempt == 1 && !c.redelivered && len(m.steps) == 0 && late > (longest+m.unsynced()+slowDial).Milliseconds() {
		bad("it is the first, and has waited for %d ms; its timer waits for %v", late, longest)
	}
}

// latest is the latest instant that the wall clock showed.
func (m *machine) latest() int64 {
	to := m.left.wall
	for _, s := range m.steps {
		to = max(to, s.from)
	}
	return to
}

// setBack reports whether the clock was set back while a call waited for the note
// that at most once needs, or for its dial: when it was begun, it was due.
func (m *machine) setBack(t *timer, c *call) bool {
	begun := c.asked
	if !t.all(func(v version) bool { return v.Delivery == engine.AtLeastOnce }) {
		begun -= m.unsynced()
	}
	return slices.ContainsFunc(m.steps, func(s clockStep) bool {
		return s.to < s.from && s.from >= c.key.Due && begun <= s.at && s.at <= c.at
	})
}

// foundLate tells whether a start or a step of the clock found a due late by more than this.
func (m *machine) foundLate(due int64, by time.Duration) bool {
	for _, looked := range m.looks { // also of one that was not told that its decision was stored
		if due < looked-by.Milliseconds() {
			return true
		}
	}
	for _, s := range m.steps {
		if s.to > s.from && due < s.to-by.Milliseconds()+1000 {
			return true
		}
	}
	return false
}

// forgot tells whether the process died before it could have noted an answer.
func (m *machine) forgot(t *timer, calls []*call) bool {
	for _, c := range calls {
		if c.answer.class == engine.ClassOK && m.diedAfter(c) != nil {
			return true
		}
	}
	return false
}

// diedAfter is the death that may have taken away what a call's answer was.
func (m *machine) diedAfter(c *call) *end {
	for i := range m.ended {
		if x := &m.ended[i]; x.life == c.life && x.crashed && (c.ended == 0 || c.ended >= x.at-m.unsynced()) {
			return x
		}
	}
	return nil
}

// unsynced is how long an answer may take to the disk.
func (m *machine) unsynced() time.Duration {
	d := 100*time.Millisecond + 4*m.script.Pace
	for _, s := range m.script.Steps {
		if s.Kind == Slow || s.Kind == Stall {
			d = max(d, 4*s.By+100*time.Millisecond)
		}
	}
	return d
}

func (t *timer) eraOf(generation uint32) *era {
	for _, e := range t.eras {
		if e.first.Generation == generation {
			return e
		}
	}
	return nil
}

func (e *era) atMostOnce() bool {
	return slices.ContainsFunc(e.timer.versions, func(v version) bool { return v.Delivery == engine.AtMostOnce })
}

func (e *era) fewest() int {
	n := e.timer.versions[0].Retry.MaxAttempts
	for _, v := range e.timer.versions {
		n = min(n, v.Retry.MaxAttempts)
	}
	return n
}

// holdCalls: L2 to L6 and L8.
func (m *machine) holdCalls(t *timer) {
	for due, calls := range t.calls {
		slices.SortStableFunc(calls, func(a, b *call) int { return int(a.at - b.at) })
		known := t.asked(due)
		for i, c := range calls {
			bad := func(format string, args ...any) {
				m.wrong("%s: the call of %s at %v, attempt %d: %s", t.name(), stamp(due), c.at, c.attempt, fmt.Sprintf(format, args...))
			}
			if early := c.key.Due*1000 - c.wall.UnixMicro(); early > 0 && !m.setBack(t, c) {
				bad("it is %d µs early", early)
			}
			if !known {
				bad("no definition has this due")
			}
			m.holdVersion(t, c, bad)
			m.holdMisfire(t, c, bad)
			m.holdFresh(t, c, bad)
			if i > 0 {
				m.holdRepeat(t, calls[i-1], c, bad)
			}
			if !c.redelivered && slices.ContainsFunc(calls[:i], func(was *call) bool { return was.life < c.life && was.attempt >= c.attempt }) &&
				t.redriven[due] == 0 && len(t.unsure) == 0 && !m.back() {
				bad("a former process has made that attempt, and it is not marked")
			}
			if m.script.Settings.Workers >= 8 && len(m.steps) == 0 && c.at > m.script.Calm+30*time.Second && i == 0 && t.manual[due] == nil {
				if late := c.wall.UnixMilli() - due; late > 100 && due > m.begin.Add(m.script.Calm+30*time.Second).UnixMilli() && t.allOverlap() {
					bad("it is %d ms late, and nothing ails the machine", late)
				}
			}
		}
		most := 1 + t.redriven[due]
		for _, r := range t.unsure {
			if r.Kind == Retry {
				most++
			}
		}
		if n := len(calls); n > most && t.all(func(v version) bool { return v.Delivery == engine.AtMostOnce }) {
			m.wrong("%s: %s is at most once, and was called %d times", t.name(), stamp(due), n)
		}
	}
}

func (t *timer) all(is func(version) bool) bool {
	return !slices.ContainsFunc(t.versions, func(v version) bool { return !is(v) })
}

func (t *timer) allOverlap() bool {
	return t.all(func(v version) bool { return v.Overlap == engine.OverlapAllow })
}

// holdOverlap: of a timer that does not allow it no two tasks are busy at once. A
// task is busy from its first attempt to its last answer.
func (m *machine) holdOverlap(t *timer) {
	if t.all(func(v version) bool { return v.Overlap == engine.OverlapAllow }) ||
		!t.all(func(v version) bool { return v.Overlap != engine.OverlapAllow }) {
		return
	}
	type span struct {
		first    *call
		from, to int // see call.began
	}
	var busy []span
	for _, calls := range t.calls { // sorted by holdCalls
		for i, c := range calls {
			end := c.over
			if end == 0 { // as long as its process lived
				end = math.MaxInt
			}
			if i > 0 && calls[i-1].life == c.life && c.attempt == calls[i-1].attempt+1 && t.redriven[c.key.Due] == 0 && len(t.unsure) == 0 {
				busy[len(busy)-1].to = end
				continue
			}
			busy = append(busy, span{c, c.began, end})
		}
	}
	slices.SortFunc(busy, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for i, b := range busy {
		for _, a := range busy[:i] {
			if a.first.life == b.first.life && a.first.key != b.first.key && b.from < a.to {
				m.wrong("%s: the call of %s at %v comes while %s is busy, since %v", t.name(), stamp(b.first.key.Due), b.first.at,
					stamp(a.first.key.Due), a.first.at)
			}
		}
	}
}

// asked tells whether anybody asked for a due.
func (t *timer) asked(due int64) bool {
	if t.manual[due] != nil || slices.ContainsFunc(t.unsure, func(r *request) bool { return r.Kind == Run && r.about(due) }) {
		return true
	}
	return slices.ContainsFunc(t.eras, func(e *era) bool { return e.has(due) })
}

// holdVersion: a call is of the definition in force when it starts (L3, L6).
func (m *machine) holdVersion(t *timer, c *call, bad func(string, ...any)) {
	for _, v := range t.versions {
		switch {
		case v.by == nil:
		case v.Version == c.version && c.at < v.by.sent:
			bad("version %d was asked for only at %v", v.Version, v.by.sent)
		case v.Version > c.version && v.by.state == done && c.at > v.by.answered:
			bad("it is of version %d, and version %d was acknowledged at %v", c.version, v.Version, v.by.answered)
		}
	}
	if r := t.end; r != nil && r.state == done && c.at > r.answered {
		bad("its delete was acknowledged at %v: %s", r.answered, r.deleted)
	}
}

// holdRepeat: a call that comes again has a reason (L4, L5).
func (m *machine) holdRepeat(t *timer, was, c *call, bad func(string, ...any)) {
	died := m.diedAfter(was)
	redriven := t.redriven[c.key.Due] > 0 || slices.ContainsFunc(t.unsure, func(r *request) bool { return r.Kind == Retry })
	switch {
	case died != nil && died.at <= c.at:
		again := c.attempt <= was.attempt || was.answer.class == engine.ClassOK
		if again && !c.redelivered && !m.back() && !redriven {
			bad("it comes again after a crash and is not marked")
		}
	case redriven:
	case was.answer.class == engine.ClassOK:
		bad("it was taken at %v, and nothing has crashed", was.at)
	case was.answer.class == engine.ClassRejected:
		bad("it was rejected at %v", was.at)
	case c.attempt <= was.attempt:
		bad("it comes after attempt %d", was.attempt)
	case was.ended != 0 && t.onePolicy():
		p := t.versions[0].Retry
		wait := float64(p.Backoff)
		for n := 1; n < was.attempt; n++ {
			wait *= p.Multiplier
		}
		if got := c.at - was.ended; got < min(time.Duration(wait), p.MaxBackoff)-time.Millisecond && len(m.steps) == 0 {
			bad("only %v after attempt %d", got, was.attempt)
		}
	}
}

// back reports whether the clock was ever set back.
func (m *machine) back() bool {
	return slices.ContainsFunc(m.steps, func(s clockStep) bool { return s.to < s.from })
}

func (t *timer) onePolicy() bool {
	return t.all(func(v version) bool { return v.Retry == t.versions[0].Retry })
}

// holdMisfire: what a timer wants skipped is not called, when it was found late
// by a start or a step of the clock.
func (m *machine) holdMisfire(t *timer, c *call, bad func(string, ...any)) {
	due := c.key.Due
	skips := t.all(func(v version) bool { return v.Misfire.Policy == engine.MisfireSkip && !v.Schedule.OneShot() })
	caught := slices.ContainsFunc(t.eras, func(e *era) bool { return slices.Contains(e.caught, due) })
	if !skips || caught || t.manual[due] != nil || len(t.unsure) > 0 || t.redriven[due] > 0 {
		return
	}
	const late = 11_000 // a second more than it takes to be a misfire
	if c.wall.UnixMilli()-due < late && !m.forward(end{}) {
		return // found late, and then, by a clock that was set back, in time
	}
	if c.attempt > 1 {
		return // it was begun before, and goes on
	}
	for _, x := range m.ended {
		if x.upWall != 0 && x.at < c.at && x.wall < due && due < x.upWall-late && m.forward(x) {
			bad("it was found %v late by a start, and its timer skips such", time.Duration(x.upWall-due)*time.Millisecond)
		}
	}
	since := t.has(due)
	for _, s := range m.steps {
		if since <= s.at && s.at < c.asked && s.from < due && due < s.to-late && !m.reached(due, s) && !m.asleep(s) {
			bad("a step of the clock made it %v late, and its timer skips such", time.Duration(s.to-due)*time.Millisecond)
		}
	}
}

// has is since when a timer has a due: from before that no step of the clock made it late.
func (t *timer) has(due int64) (since time.Duration) {
	for _, e := range slices.Backward(t.eras) {
		if e.has(due) && (e.endWall == 0 || due <= e.endWall) {
			if since = 0; e.start != nil {
				since = e.start.sent
			}
		}
	}
	return since
}

// reached tells whether the clock stood beyond a due before a step of it, and was set
// back: then the due was taken on time, and no step made it late.
func (m *machine) reached(due int64, before clockStep) bool {
	return slices.ContainsFunc(m.steps, func(s clockStep) bool { return s.at < before.at && s.to < s.from && due <= s.from })
}

// asleep tells whether nobody saw a step, as no process ran: the next start finds what
// it made late, unless the clock was set back meanwhile.
func (m *machine) asleep(s clockStep) bool {
	for _, x := range slices.Backward(m.ended) {
		if x.at <= s.at {
			return x.upWall == 0 || s.at < x.up
		}
	}
	return false
}

// forward tells whether the clock was not set back since the end of a life.
func (m *machine) forward(x end) bool {
	return !slices.ContainsFunc(m.steps, func(s clockStep) bool { return s.at >= x.at && s.to < s.from })
}

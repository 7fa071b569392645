package checker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const (
	simStart = int64(1795000000000)
	simEnd   = simStart + 60_000
	simQuiet = simEnd + 30_000
)

// sim is a service that keeps its promises, and writes the logs of that.
type sim struct {
	r    *rand.Rand
	l    Logs
	ids  int
	now  []string // that stand at the end
	repl int      // repeats, so that there are not too many
}

func (s *sim) chance(percent int) bool { return s.r.IntN(100) < percent }

func (s *sim) between(lo, hi int64) int64 { return lo + s.r.Int64N(hi-lo) }

// goodRun makes a good history of so many one-shots, and a fiftieth as many
// recurring timers.
func goodRun(seed uint64, shots int) *Logs {
	s := &sim{r: rand.New(rand.NewPCG(seed, 3))}
	at := simStart + 10_000
	for range 2 + s.r.IntN(3) {
		f := Broken{Fault: "kill", From: at, To: at + s.between(200, 2000)}
		switch s.r.IntN(4) {
		case 0:
			f.Fault = "terminate"
		case 1:
			f.To = f.From + s.between(12_000, 15_000)
		}
		s.l.Broken = append(s.l.Broken, f)
		at = f.To + s.between(4000, 8000)
	}
	s.l.Asked = append(s.l.Asked, Asked{Op: Run, Conditions: &Condition{
		Ended: simEnd, InCall: 64, MinRate: shots / 75, Recover: 3000, P50: 2000, P99: 20_000, Max: 250_000,
	}})
	for range shots {
		s.oneShot()
	}
	for range shots / 50 {
		s.recurring()
	}
	s.ask(Asked{Op: List, Invoked: simQuiet, Answered: simQuiet + 1, OK: true, IDs: s.now})
	s.ask(Asked{Op: Audit, Invoked: simQuiet, Answered: simQuiet + 1, OK: true})
	s.r.Shuffle(len(s.l.Arrived), func(i, j int) { s.l.Arrived[i], s.l.Arrived[j] = s.l.Arrived[j], s.l.Arrived[i] })
	return &s.l
}

func (s *sim) ask(a Asked) { s.l.Asked = append(s.l.Asked, a) }

// down is the fault that the service is away by at an instant (Unix ms).
func (s *sim) down(at int64) *Broken {
	for i := range s.l.Broken {
		if f := &s.l.Broken[i]; at >= f.From && at < f.To {
			return f
		}
	}
	return nil
}

func (s *sim) definition() *Definition {
	s.ids++
	d := &Definition{RequestSHA: fmt.Sprintf("sha%d", s.ids), Retry: Retry{MaxAttempts: 3, Backoff: 200, Multiplier: 2, Jitter: 0.2}}
	if s.chance(10) {
		d.Delivery = "at_most_once"
	}
	return d
}

// create is answered at an instant at which the service is up.
func (s *sim) create(d *Definition, at int64) Asked {
	for s.down(at) != nil {
		at += 500
	}
	id := fmt.Sprint(7000 + s.ids)
	a := Asked{
		Op: Create, Invoked: at - 2, Answered: at + 2, OK: true, Status: 201, Timer: id, App: "app", Name: "n" + id,
		From: at, Anchor: at, Definition: d,
	}
	s.ask(a)
	return a
}

func (s *sim) oneShot() {
	d := s.definition()
	at := s.between(simStart, simEnd-5000)
	d.Schedule.At = at + s.between(10, 3000)
	a := s.create(d, at)
	end := int64(forever)
	switch n := s.r.IntN(100); {
	case n < 5 && s.down(a.From+5) == nil:
		end = a.From + 5
		s.ask(Asked{Op: Delete, Timer: a.Timer, Invoked: end - 1, Answered: end, OK: true, Result: "cancelled"})
		s.ask(Asked{Op: Get, Timer: a.Timer, Invoked: end + 1, Answered: end + 2, Failed: true, Status: 404})
	case n < 15:
		s.ask(Asked{Op: Get, Timer: a.Timer, Invoked: a.Answered, Answered: a.Answered + 1, OK: true, Status: 200, Version: 1})
		s.now = append(s.now, a.Timer)
	default:
		s.now = append(s.now, a.Timer)
	}
	if d.Schedule.At < end {
		s.fire(&a, d, d.Schedule.At, max(d.Schedule.At, a.From), end)
	}
}

func (s *sim) recurring() {
	d := s.definition()
	d.Delivery = ""
	if s.chance(50) {
		d.Schedule.Every = s.between(100, 1000)
	} else {
		d.Schedule = Schedule{Cron: []string{"* * * * * *", "*/2 * * * * *", "0-30 * * * * *"}[s.r.IntN(3)], TimeZone: "Europe/Paris"}
	}
	d.Misfire = []string{"", "skip", "all"}[s.r.IntN(3)]
	a := s.create(d, simStart+s.between(0, 5000))
	from, anchor := a.From, a.From
	for gone := false; !gone; {
		end := s.between(from+1000, simEnd+20_000)
		for s.down(end) != nil || s.down(end+5) != nil || s.down(end-1) != nil {
			end += 100
		}
		if end > simEnd {
			end = forever
		}
		s.every(&a, d, from, anchor, end)
		if end == forever {
			s.now = append(s.now, a.Timer)
			return
		}
		x := Asked{Timer: a.Timer, Invoked: end - 1, Answered: end, OK: true, From: end}
		switch s.r.IntN(4) {
		case 0:
			x.Op, x.Result, x.From, gone = Delete, "cancelled", 0, true
			s.ask(x)
		case 1:
			x.Op, x.From = Disable, 0
			s.ask(x)
			if gone = s.chance(50) || end+2000 > simEnd || s.down(end+1500) != nil || s.down(end+1499) != nil; gone {
				s.now = append(s.now, a.Timer)
				return
			}
			from = end + 1500
			s.ask(Asked{Op: Enable, Timer: a.Timer, Invoked: from - 1, Answered: from, OK: true, From: from, Definition: d})
		default: // another schedule, and another body
			n := *d
			s.ids++
			n.RequestSHA, n.Schedule = fmt.Sprintf("sha%d", s.ids), Schedule{Every: d.Schedule.Every + 1 + s.r.Int64N(300)}
			if n.Schedule.Every < 100 {
				n.Schedule.Every = 500
			}
			d = &n
			x.Op, x.Definition = Change, d
			s.ask(x)
			from = end
		}
	}
}

// every fires the dues of an interval or a calendar of seconds in (from, end].
func (s *sim) every(a *Asked, d *Definition, from, anchor, end int64) {
	var dues []int64
	if e := d.Schedule.Every; e != 0 {
		for due := anchor + e; due <= min(end-1, simEnd); due += e {
			if due > from {
				dues = append(dues, due)
			}
		}
	} else {
		for at := from/1000 + 1; at*1000 <= min(end-1, simEnd); at++ {
			sec := at % 60
			if d.Schedule.Cron[:2] == "* " || d.Schedule.Cron[:2] == "*/" && sec%2 == 0 || d.Schedule.Cron[:2] == "0-" && sec <= 30 {
				dues = append(dues, at*1000)
			}
		}
	}
	for i, due := range dues {
		f := s.down(due)
		if f != nil && due < f.To-misfireAfter && d.Misfire != "all" {
			// It is found at the start, too late: the latest of them is called.
			latest := i+1 == len(dues) || dues[i+1] >= f.To-misfireAfter
			if d.Misfire == "skip" || !latest {
				s.end(a, due, "skipped", "misfire", 0)
				continue
			}
		}
		s.fire(a, d, due, due, end)
	}
}

func (s *sim) end(a *Asked, due int64, status, reason string, attempts int) {
	s.ask(Asked{Op: Task, Timer: a.Timer, OK: true, Invoked: simQuiet, Answered: simQuiet, Final: &Final{Due: due, Status: status, Reason: reason, Attempts: attempts}})
}

// fire makes the calls of a due from an instant on, as the receiver answers them.
func (s *sim) fire(a *Asked, d *Definition, due, at, end int64) {
	amo := d.Delivery == "at_most_once"
	answers := [][]int{{200}, {200}, {200}, {200}, {200}, {200}, {500, 204}, {0, 200}, {503, 503, 503}, {404}, {429, 0, 200}}[s.r.IntN(11)]
	redelivered := false
	t := at*1000 + s.between(50, 900) // µs
	for n := 1; ; n++ {
		if f := s.down(t / 1000); f != nil {
			if amo && due < f.From && s.chance(50) {
				s.end(a, due, "unknown", "may_have_been_sent", n)
				return
			}
			t = f.To*1000 + s.between(100, 900_000)
			redelivered = true
			if s.down(t/1000) != nil {
				panic("faults too close")
			}
		}
		if t/1000 >= end-1 {
			s.end(a, due, "cancelled", "deleted", n-1)
			return
		}
		code := answers[min(n, len(answers))-1]
		x := Arrived{
			Timer: a.Timer, Due: due, App: a.App, Name: a.Name, Attempt: n, Redelivered: redelivered, RequestSHA: d.RequestSHA,
			At: t, Done: t + s.between(100, 5000), Code: code,
		}
		s.l.Arrived = append(s.l.Arrived, x)
		redelivered = false
		// A crash right after it: its outcome is forgotten.
		if f := s.crash(t / 1000); f != nil && s.chance(60) && s.repl < 100 && f.To+1000 < end {
			if amo {
				s.end(a, due, "unknown", "may_have_been_sent", n)
				return
			}
			s.repl++
			x.At = f.To*1000 + s.between(100, 900_000)
			x.Done, x.Redelivered = x.At+500, true
			s.l.Arrived = append(s.l.Arrived, x)
		}
		switch {
		case x.ok():
			return
		case amo && code == 0:
			s.end(a, due, "unknown", "may_have_been_sent", n)
			return
		case amo || !x.retryable():
			s.end(a, due, "failed", "rejected", n)
			return
		case n == d.Retry.MaxAttempts:
			s.end(a, due, "dead", "max_attempts", n)
			return
		}
		wait := 200_000 * int64(1<<(n-1))
		t = x.Done + wait*8/10 + s.r.Int64N(wait*4/10)
	}
}

// crash is one that comes within 100 ms.
func (s *sim) crash(at int64) *Broken {
	for i := range s.l.Broken {
		if f := &s.l.Broken[i]; f.forgets() && at < f.From && at > f.From-100 {
			return f
		}
	}
	return nil
}

func check(t *testing.T, l *Logs) *Report {
	t.Helper()
	r, err := Check(l)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestGoodRuns: nothing is flagged in a history in which nothing is wrong.
func TestGoodRuns(t *testing.T) {
	repeats := 0
	for seed := range uint64(100) {
		r := check(t, goodRun(seed, 600))
		if !r.OK() || r.Dues < 600 {
			t.Fatalf("seed %d: %s", seed, r)
		}
		repeats += r.Repeats
	}
	if repeats < 100 {
		t.Errorf("only %d repeats in all of them: crashes are not simulated", repeats)
	}
}

// TestMutations: whatever is altered in a good history is flagged.
func TestMutations(t *testing.T) {
	type victim = func(l *Logs, a *Arrived) bool
	var runs []*Logs
	for seed := range uint64(20) {
		runs = append(runs, goodRun(1000+seed, 150))
	}
	calls := func(l *Logs, a *Arrived) (n int) {
		for i := range l.Arrived {
			if l.Arrived[i].Timer == a.Timer && l.Arrived[i].Due == a.Due {
				n++
			}
		}
		return n
	}
	quiet := func(l *Logs, a *Arrived) bool { // no fault near, and its timer was never changed
		for _, f := range l.Broken {
			if a.At/1000 > f.From-3000 && a.At/1000 < f.To+4000 {
				return false
			}
		}
		for _, x := range l.Asked {
			if x.Timer == a.Timer && x.Op != Create && x.Op != Get && x.Op != Task {
				return false
			}
		}
		return true
	}
	asked := func(l *Logs, op string, f func(*Asked) bool) *Asked {
		for i := range l.Asked {
			if a := &l.Asked[i]; a.Op == op && (f == nil || f(a)) {
				return a
			}
		}
		return nil
	}
	// alone: the only call of a due.
	alone := func(l *Logs, a *Arrived) bool { return a.ok() && quiet(l, a) && calls(l, a) == 1 }
	once := func(l *Logs, a *Arrived) bool {
		return alone(l, a) && asked(l, Create, func(x *Asked) bool { return x.Timer == a.Timer }).Definition.Schedule.At != 0
	}
	// disabled: its timer, so long before it arrives, within its timeout.
	disabled := func(l *Logs, i int, by int64) {
		a := &l.Arrived[i]
		at := a.At / 1000
		l.Asked = append(l.Asked, Asked{Op: Disable, Timer: a.Timer, Invoked: at, Answered: at, OK: true})
		a.At += by * 1000
	}
	retry := func(l *Logs, a *Arrived) bool { return a.Attempt > 1 && quiet(l, a) }
	remove := func(l *Logs, i int) { l.Arrived = slices.Delete(l.Arrived, i, i+1) }
	for _, m := range []struct {
		name, rule string
		of         victim
		do         func(r *rand.Rand, l *Logs, i int)
	}{
		{"a call dropped", "L1", alone, func(_ *rand.Rand, l *Logs, i int) { remove(l, i) }},
		{"a call not taken", "L1", alone, func(_ *rand.Rand, l *Logs, i int) { l.Arrived[i].Code = 500 }},
		{"early by a microsecond", "L2", alone, func(_ *rand.Rand, l *Logs, i int) { l.Arrived[i].At = l.Arrived[i].Due*1000 - 1 }},
		{"early by up to a second", "L2", alone, func(r *rand.Rand, l *Logs, i int) {
			l.Arrived[i].At = l.Arrived[i].Due*1000 - 1 - r.Int64N(1e6)
		}},
		{"duplicated", "L4", func(l *Logs, a *Arrived) bool {
			return alone(l, a) && asked(l, Create, func(x *Asked) bool { return x.Timer == a.Timer }).Definition.Delivery == ""
		}, func(r *rand.Rand, l *Logs, i int) {
			a := l.Arrived[i]
			a.At += 1000 + r.Int64N(500_000)
			a.Done = a.At + 100
			l.Arrived = append(l.Arrived, a)
		}},
		{"a repeat beside a crash, not marked", "L4", func(l *Logs, a *Arrived) bool {
			if !a.Redelivered || !a.ok() {
				return false
			}
			return slices.ContainsFunc(l.Arrived, func(b Arrived) bool { return b.Timer == a.Timer && b.Due == a.Due && b.At < a.At && b.ok() })
		}, func(_ *rand.Rand, l *Logs, i int) { l.Arrived[i].Redelivered = false }},
		{"another due", "L6", alone, func(r *rand.Rand, l *Logs, i int) { l.Arrived[i].Due -= 1 + r.Int64N(9) }},
		{"another timer", "L6", alone, func(_ *rand.Rand, l *Logs, i int) { l.Arrived[i].Timer += "1" }},
		{"another app", "L6", alone, func(_ *rand.Rand, l *Logs, i int) { l.Arrived[i].App = "other" }},
		{"another name", "L6", alone, func(_ *rand.Rand, l *Logs, i int) { l.Arrived[i].Name += "x" }},
		{"another request", "L6", alone, func(r *rand.Rand, l *Logs, i int) { l.Arrived[i].RequestSHA = fmt.Sprintf("sha%d", 5000+r.IntN(99)) }},
		{"another attempt", "L5", alone, func(r *rand.Rand, l *Logs, i int) { l.Arrived[i].Attempt = 2 + r.IntN(9) }},
		{"attempt 0", "L5", alone, func(_ *rand.Rand, l *Logs, i int) { l.Arrived[i].Attempt = 0 }},
		{"a retry too soon", "L5", retry, func(_ *rand.Rand, l *Logs, i int) {
			a := &l.Arrived[i]
			for j := range l.Arrived {
				if b := &l.Arrived[j]; b.Timer == a.Timer && b.Due == a.Due && b.Attempt == a.Attempt-1 {
					a.At = b.Done + 50_000
				}
			}
		}},
		{"a retry that skips a number", "L5", retry, func(_ *rand.Rand, l *Logs, i int) { l.Arrived[i].Attempt++ }},
		{"the first attempt missing", "L5", func(l *Logs, a *Arrived) bool { return a.Attempt == 1 && calls(l, a) > 1 && quiet(l, a) }, func(_ *rand.Rand, l *Logs, i int) { remove(l, i) }},
		{"the last retry missing", "L1", func(l *Logs, a *Arrived) bool { return retry(l, a) && (a.ok() || a.Attempt == 3) }, func(_ *rand.Rand, l *Logs, i int) { remove(l, i) }},
		{"called on after a final answer", "L5", func(l *Logs, a *Arrived) bool {
			return a.Code == 404 && quiet(l, a) && asked(l, Create, func(x *Asked) bool { return x.Timer == a.Timer }).Definition.Delivery == ""
		}, func(_ *rand.Rand, l *Logs, i int) {
			a := l.Arrived[i]
			a.At, a.Done, a.Attempt = a.At+900_000, a.Done+900_000, 2
			l.Arrived = append(l.Arrived, a)
		}},
		{"at most once, twice", "L8", func(l *Logs, a *Arrived) bool {
			return asked(l, Create, func(x *Asked) bool { return x.Timer == a.Timer }).Definition.Delivery != ""
		}, func(_ *rand.Rand, l *Logs, i int) {
			a := l.Arrived[i]
			a.At, a.Done, a.Redelivered = a.At+900_000, a.Done+900_000, true
			l.Arrived = append(l.Arrived, a)
		}},
		{"late", "L7", alone, func(_ *rand.Rand, l *Logs, i int) { l.Arrived[i].At += 300_000 }},
		{"resurrected after its delete", "L3", alone, func(r *rand.Rand, l *Logs, i int) {
			a := l.Arrived[i]
			born := asked(l, Create, func(x *Asked) bool { return x.Timer == a.Timer })
			at := max(born.Answered+2, a.At/1000-1-r.Int64N(1000))
			l.Asked = append(l.Asked, Asked{Op: Delete, Timer: a.Timer, Invoked: at - 1, Answered: at, OK: true, Result: "cancelled"})
		}},
		{"called after it was disabled", "L3", once, func(_ *rand.Rand, l *Logs, i int) { disabled(l, i, onTheWay+1) }},
		{"a record that is gone", "L1", func(l *Logs, a *Arrived) bool { return a.Code == 404 && quiet(l, a) }, func(_ *rand.Rand, l *Logs, i int) {
			a := l.Arrived[i]
			l.Asked = slices.DeleteFunc(l.Asked, func(x Asked) bool { return x.Op == Task && x.Timer == a.Timer && x.Final.Due == a.Due })
		}},
		{"dead too soon", "L1", func(l *Logs, a *Arrived) bool { return a.Code == 503 && a.Attempt == 3 && quiet(l, a) }, func(_ *rand.Rand, l *Logs, i int) {
			a := l.Arrived[i]
			x := asked(l, Task, func(x *Asked) bool { return x.Timer == a.Timer && x.Final.Due == a.Due })
			x.Final = &Final{Due: a.Due, Status: "dead", Attempts: 2}
		}},
		{"skipped without a reason", "L1", alone, func(_ *rand.Rand, l *Logs, i int) {
			a := l.Arrived[i]
			remove(l, i)
			l.Asked = append(l.Asked, Asked{Op: Task, Timer: a.Timer, OK: true, Final: &Final{Due: a.Due, Status: "skipped", Reason: "overlap"}})
		}},
		{"not found after its create", "L10", alone, func(_ *rand.Rand, l *Logs, i int) {
			l.Asked = append(l.Asked, Asked{Op: Get, Timer: l.Arrived[i].Timer, Invoked: simQuiet, Answered: simQuiet + 1, Failed: true, Status: 404})
		}},
		{"read after its delete", "L10", alone, func(_ *rand.Rand, l *Logs, _ int) {
			a := asked(l, Get, func(a *Asked) bool { return a.Failed })
			a.Failed, a.OK = false, true
		}},
		{"not listed", "L10", alone, func(r *rand.Rand, l *Logs, _ int) {
			a := asked(l, List, nil)
			i := r.IntN(len(a.IDs))
			a.IDs = slices.Delete(slices.Clone(a.IDs), i, i+1)
		}},
		{"listed after its delete", "L10", alone, func(_ *rand.Rand, l *Logs, _ int) {
			a := asked(l, List, nil)
			a.IDs = append(slices.Clone(a.IDs), asked(l, Delete, nil).Timer)
		}},
		{"a stale call", "L13", once, func(_ *rand.Rand, l *Logs, i int) {
			a := &l.Arrived[i]
			born := asked(l, Create, func(x *Asked) bool { return x.Timer == a.Timer })
			d := *born.Definition
			d.StaleAfter, d.Timeout, born.Definition = 100, 1000, &d
			a.At, a.Done = max(a.Due, born.From)*1000+1_101_000, max(a.Due, born.From)*1000+1_102_000
		}},
		{"a task that is stale too soon", "L1", once, func(_ *rand.Rand, l *Logs, i int) {
			a := l.Arrived[i]
			l.Arrived = slices.Delete(l.Arrived, i, i+1)
			l.Asked = append(l.Asked, Asked{
				Op: Task, Timer: a.Timer, OK: true, Invoked: simQuiet, Answered: simQuiet,
				Final: &Final{Due: a.Due, Status: "skipped", Reason: "stale", Ended: a.Due + 24*3_600_000},
			})
		}},
		{"the auditor complains", "L11", alone, func(_ *rand.Rand, l *Logs, _ int) { asked(l, Audit, nil).Violations = 1 }},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for n, tries := 0, uint64(0); n < 100; tries++ {
				if tries > 10_000 {
					t.Fatalf("only %d calls to alter", n)
				}
				r := rand.New(rand.NewPCG(tries, 4))
				good := runs[r.IntN(len(runs))]
				i, looked := r.IntN(len(good.Arrived)), 0
				for ; looked < len(good.Arrived) && !m.of(good, &good.Arrived[i]); looked++ {
					i = (i + 1) % len(good.Arrived)
				}
				if looked == len(good.Arrived) {
					continue
				}
				n++
				l := &Logs{slices.Clone(good.Asked), slices.Clone(good.Arrived), good.Broken}
				m.do(r, l, i)
				if got := check(t, l); !got.Has(m.rule) {
					t.Fatalf("try %d, %+v: %s is not flagged: %s", tries, good.Arrived[i], m.rule, got)
				}
			}
		})
	}
}

// TestDoubtfulChange: a change that was sent and not answered may have cancelled
// what was to be called again. Nothing else may.
func TestDoubtfulChange(t *testing.T) {
	const due = simStart + 1000
	every := func(ms int64) *Definition { return &Definition{Schedule: Schedule{Every: ms}, RequestSHA: "x"} }
	l := &Logs{
		Asked: []Asked{
			{Op: Run, Conditions: &Condition{Ended: due + 100, P50: 2000, P99: 20_000, Max: 250_000}},
			{Op: Create, Invoked: simStart, Answered: simStart, OK: true, Status: 201, Timer: "1", App: "app", Name: "n", From: simStart, Anchor: simStart, Definition: every(1000)},
			{Op: Change, Invoked: due + 20, Answered: due + 40, Timer: "1", Definition: every(1_000_000)},
			{Op: Task, OK: true, Timer: "1", Final: &Final{Due: due, Status: "cancelled", Reason: "replaced", Attempts: 1}},
			{Op: List, Invoked: simQuiet, Answered: simQuiet, OK: true, IDs: []string{"1"}},
			{Op: Audit, Invoked: simQuiet, Answered: simQuiet, OK: true},
		},
		Arrived: []Arrived{{Timer: "1", Due: due, App: "app", Name: "n", Attempt: 1, RequestSHA: "x", At: due*1000 + 200, Done: due*1000 + 300}},
	}
	if r := check(t, l); len(r.Violations) > 0 {
		t.Error(r)
	}
	l.Asked = slices.Delete(l.Asked, 2, 3)
	if r := check(t, l); len(r.Violations) != 1 || r.Violations[0].Rule != "L1" {
		t.Errorf("without the change: %s", r)
	}
}

// TestTooQuiet: a run that proves nothing is invalid, whatever it shows.
func TestTooQuiet(t *testing.T) {
	l := goodRun(1, 300)
	for name, change := range map[string]func(*Condition){
		"rate": func(c *Condition) { c.MinRate = 100_000 },
		"open": func(c *Condition) { c.MinOpen = 100_000 },
	} {
		c := *l.Asked[0].Conditions
		change(&c)
		quiet := *l
		quiet.Asked = slices.Clone(l.Asked)
		quiet.Asked[0].Conditions = &c
		if r := check(t, &quiet); len(r.Invalid) != len(l.Broken) || r.OK() {
			t.Errorf("%s: %s", name, r)
		}
	}
	few := goodRun(1, 60)
	few.Asked[0].Conditions.Calm = 1e12
	if r := check(t, few); len(r.Invalid) != 1 || r.Late.Dues >= minLate {
		t.Errorf("few dues outside faults: %s", r)
	}
	if _, err := Check(&Logs{}); err == nil {
		t.Error("a run without conditions was judged")
	}
}

// TestMetNothing: what comes due while a fault lasts is no call that it hit.
func TestMetNothing(t *testing.T) {
	const from, to = simStart + 5000, simStart + 6000
	run := func(dues ...int64) *Report {
		l := &Logs{
			Asked:  []Asked{{Op: Run, Conditions: &Condition{Ended: simEnd, MinOpen: 2, Recover: 1000}}},
			Broken: []Broken{{Fault: "kill", From: from, To: to}},
		}
		for i, due := range dues {
			id := fmt.Sprint(i)
			l.Asked = append(l.Asked, Asked{
				Op: Create, Invoked: simStart, Answered: simStart, OK: true, Status: 201, Timer: id, App: "app", Name: id,
				From: simStart, Anchor: simStart, Definition: &Definition{Schedule: Schedule{At: due}},
			})
			at := due + 1
			if at >= from {
				at = max(at, to+1)
			}
			l.Arrived = append(l.Arrived, Arrived{Timer: id, Due: due, App: "app", Name: id, Attempt: 1, At: at * 1000, Done: at*1000 + 500, Code: 200})
		}
		return check(t, l)
	}
	if r := run(from, from+1, from+500, to, from-101); len(r.Invalid) != 1 || len(r.Violations) > 0 {
		t.Errorf("it met no call: %s", r)
	}
	if r := run(from-100, from-1); !r.OK() { // the second is not called before it
		t.Errorf("it met two: %s", r)
	}
	if r := run(from-101, from-101); !r.OK() { // due before, and called in the last 100 ms
		t.Errorf("it met two that were late: %s", r)
	}
}

// TestTooManyRepeats: beside a crash there are no more than what was in flight and
// what arrived in the 250 ms before it.
func TestTooManyRepeats(t *testing.T) {
	const from, to = simStart + 5000, simStart + 6000
	for repeats, fine := range map[int]bool{12: true, 13: false} {
		l := &Logs{
			Asked:  []Asked{{Op: Run, Conditions: &Condition{Ended: simEnd, InCall: 10}}},
			Broken: []Broken{{Fault: "kill", From: from, To: to}},
		}
		for i := range repeats {
			due := int64(from - 1500) // called before the last second
			if i < 2 {
				due = from - 200
			}
			id := fmt.Sprint(i)
			l.Asked = append(l.Asked, Asked{
				Op: Create, Invoked: simStart, Answered: simStart, OK: true, Status: 201, Timer: id, App: "app", Name: id,
				From: simStart, Anchor: simStart, Definition: &Definition{Schedule: Schedule{At: due}},
			})
			a := Arrived{Timer: id, Due: due, App: "app", Name: id, Attempt: 1, At: due*1000 + 500, Done: due*1000 + 900, Code: 200}
			l.Arrived = append(l.Arrived, a)
			a.At, a.Done, a.Redelivered = to*1000+500, to*1000+900, true
			l.Arrived = append(l.Arrived, a)
		}
		if r := check(t, l); r.OK() != fine || r.Beside != repeats {
			t.Errorf("%d repeats: %s", repeats, r)
		}
	}
}

// TestSaved: a saved run is judged as it was.
func TestSaved(t *testing.T) {
	l := goodRun(2, 300)
	dir := t.TempDir()
	if err := l.Write(dir); err != nil {
		t.Fatal(err)
	}
	again, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := check(t, l).String(), check(t, again).String(); a != b {
		t.Errorf("%s\nand, read again, %s", a, b)
	}
}

// BenchmarkCheck judges a run of some ten thousand arrivals.
func BenchmarkCheck(b *testing.B) {
	l := goodRun(5, 3000)
	for b.Loop() {
		if _, err := Check(l); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(l.Arrived))*float64(b.N)/b.Elapsed().Seconds(), "arrivals/s")
}

func TestOracle(t *testing.T) {
	at := func(s string) int64 {
		x, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return x.UnixMilli()
	}
	for _, c := range []struct {
		name, after, to string
		s               Schedule
		want            []string
	}{
		{
			"a fixed hour that the clock skips", "2026-03-07T12:00:00Z", "2026-03-10T00:00:00Z",
			Schedule{Cron: "30 2 * * *", TimeZone: "America/New_York"},
			[]string{"2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"},
		},
		{
			"several in one gap are one", "2026-03-08T00:00:00Z", "2026-03-08T08:00:00Z",
			Schedule{Cron: "*/10 2 * * *", TimeZone: "America/New_York"},
			[]string{"2026-03-08T07:00:00Z"},
		},
		{
			"a fixed hour that comes twice", "2026-11-01T00:00:00Z", "2026-11-02T07:00:00Z",
			Schedule{Cron: "30 1 * * *", TimeZone: "America/New_York"},
			[]string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"},
		},
		{
			"every hour goes on", "2026-11-01T04:00:00Z", "2026-11-01T08:00:00Z",
			Schedule{Cron: "30 * * * *", TimeZone: "America/New_York"},
			[]string{"2026-11-01T04:30:00Z", "2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z", "2026-11-01T07:30:00Z"},
		},
		{
			"a midnight that is skipped", "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z",
			Schedule{Cron: "@daily", TimeZone: "Asia/Beirut"},
			[]string{"2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z"},
		},
		{
			"day or weekday", "2026-11-01T00:00:00Z", "2026-11-16T00:00:00Z",
			Schedule{Cron: "0 0 13 * FRI"},
			[]string{"2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z"},
		},
		{"seconds", "2026-11-01T00:00:00Z", "2026-11-01T00:01:00Z", Schedule{Cron: "15,45 * * * * 7"}, []string{"2026-11-01T00:00:15Z", "2026-11-01T00:00:45Z"}},
		{"max_runs", "2026-11-01T00:00:00Z", "2026-11-05T00:00:00Z", Schedule{Cron: "0 9 * * *", MaxRuns: 2}, []string{"2026-11-01T09:00:00Z", "2026-11-02T09:00:00Z"}},
		{
			"an interval from its start", "2026-11-01T00:00:00Z", "2026-11-01T00:00:30Z",
			Schedule{Every: 10_000, StartAt: at("2026-11-01T00:00:10Z")},
			[]string{"2026-11-01T00:00:10Z", "2026-11-01T00:00:20Z", "2026-11-01T00:00:30Z"},
		},
		{
			"an interval to its end", "2026-11-01T00:00:00Z", "2026-11-01T01:00:00Z",
			Schedule{Every: 10_000, EndAt: at("2026-11-01T00:00:20Z")},
			[]string{"2026-11-01T00:00:10Z", "2026-11-01T00:00:20Z"},
		},
	} {
		got, err := c.s.Dues(at(c.after), at(c.after), at(c.after), at(c.to))
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, d := range got {
			words = append(words, time.UnixMilli(d).UTC().Format(time.RFC3339))
		}
		if !slices.Equal(words, c.want) {
			t.Errorf("%s:\n got %v\nwant %v", c.name, words, c.want)
		}
	}
}

package checker

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// flowLimits are of the keys of goodFlows, by the kind that their names begin with.
var flowLimits = map[string]Limit{
	"one":   {Rate: 1, Per: 2000},
	"even":  {Rate: 3, Per: 2000},
	"burst": {Rate: 4, Per: 2000, Burst: 4},
	"line":  {Concurrency: 1, Hold: "task"},
}

// flowWay is the longest that a call of goodFlows is on its way (ms).
const flowWay = 500

// goodFlows makes a history of flow keys that keep their limits, over two kills.
func goodFlows(seed uint64) *Logs {
	s := &sim{r: rand.New(rand.NewPCG(seed, 5))}
	s.l.Asked = append(s.l.Asked, Asked{Op: Run, Conditions: &Condition{Ended: simEnd, InCall: 64, Recover: 60_000, OnTheWay: flowWay, MinFull: 20}})
	for i := range int64(2) {
		at := simStart + 10_000 + i*15_000 + s.between(0, 5000)
		s.l.Broken = append(s.l.Broken, Broken{Fault: Kill, From: at, To: at + s.between(50, 800)})
	}
	for kind, l := range flowLimits {
		s.ask(Asked{Op: Limits, App: "app", Flow: kind + "-*", Invoked: simStart - 20, Answered: simStart - 10, OK: true, Limit: &l})
		for i := range 2 {
			s.key(fmt.Sprint(kind, "-", i), &l)
		}
	}
	// A pause while nothing is due.
	s.ask(Asked{Op: Pause, App: "app", Flow: "one-0", Invoked: simStart, Answered: simStart + 10, OK: true})
	s.ask(Asked{Op: Resume, App: "app", Flow: "one-0", Invoked: simStart + 400, Answered: simStart + 410, OK: true})
	s.ask(Asked{Op: List, Invoked: simQuiet, Answered: simQuiet + 1, OK: true, IDs: s.now})
	s.ask(Asked{Op: Audit, Invoked: simQuiet, Answered: simQuiet + 1, OK: true})
	return &s.l
}

// key makes the timers of a key, and their calls, as the limit allows.
func (s *sim) key(key string, l *Limit) {
	var made []Asked
	for i, at := 0, simStart+s.between(500, 1500); i < 24; i++ {
		if s.chance(30) {
			at += s.between(0, 4000)
		}
		d := s.definition()
		d.Delivery, d.Flow, d.Schedule.At = "", key, at+s.between(0, 300)
		a := s.create(d, simStart+s.between(0, 400))
		s.now = append(s.now, a.Timer)
		made = append(made, a)
	}
	slices.SortFunc(made, func(a, b Asked) int { return cmp.Compare(a.Definition.Schedule.At, b.Definition.Schedule.At) })
	var out []int64 // hand-outs so far (µs)
	free := int64(0)
	for i := range made {
		at := max(made[i].Definition.Schedule.At*1000, free)
		tries := 1
		if s.chance(20) {
			tries = 2
		}
		for n := 1; n <= tries; n++ {
			at = s.allows(l, out, at)
			out = append(out, at)
			x := Arrived{
				Timer: made[i].Timer, Due: made[i].Definition.Schedule.At, App: "app", Name: made[i].Name, Attempt: n, Code: 200,
				RequestSHA: made[i].Definition.RequestSHA, At: at + s.between(0, flowWay*1000),
			}
			if n < tries {
				x.Code = 503
			}
			x.Done = x.At + 200
			s.l.Arrived = append(s.l.Arrived, x)
			at = x.Done + s.between(300_000, 2_000_000)
			free = x.Done + 1 + s.between(0, 700_000)
		}
		if l.Rate > 0 {
			free = 0
		}
	}
}

// allows is when a call may be handed out, from an instant on (µs), by the naive rule: never
// the rate and one more within per, evenly without a burst, and after a start none before per.
// It arrives before the process is killed.
func (s *sim) allows(l *Limit, out []int64, at int64) int64 {
	per := l.Per * 1000
	if n := len(out); l.Rate > 0 && n >= l.Rate {
		at = max(at, out[n-l.Rate]+per)
	}
	if n := len(out); l.Rate > 0 && n > 0 && l.Burst == 0 {
		at = max(at, out[n-1]+per/int64(l.Rate))
	}
	if n := len(out); n > 0 {
		at = max(at, out[n-1])
	}
	for i := range s.l.Broken {
		if f := &s.l.Broken[i]; at > (f.From-flowWay-1)*1000 && at < (f.To+l.Per)*1000 {
			at = (f.To + l.Per) * 1000
		}
	}
	return at
}

// TestGoodFlows: nothing is flagged where each key keeps its limit.
func TestGoodFlows(t *testing.T) {
	for seed := range uint64(50) {
		if r := check(t, goodFlows(seed)); !r.OK() {
			t.Fatalf("seed %d: %s", seed, r)
		}
	}
	l := goodFlows(0)
	l.Asked[0].Conditions.MinFull = 1000
	if r := check(t, l); len(r.Invalid) != 1 || len(r.Violations) > 0 {
		t.Errorf("a run in which no limit mattered: %s", r)
	}
}

// TestWrongFlows: whatever exceeds a limit in a good history is flagged.
func TestWrongFlows(t *testing.T) {
	// of are the calls of one key, by their arrival.
	of := func(l *Logs, key string) (calls []*Arrived) {
		def := map[string]*Definition{}
		for i := range l.Asked {
			if a := &l.Asked[i]; a.Op == Create {
				def[a.Timer] = a.Definition
			}
		}
		for i := range l.Arrived {
			if def[l.Arrived[i].Timer].Flow == key {
				calls = append(calls, &l.Arrived[i])
			}
		}
		slices.SortFunc(calls, func(a, b *Arrived) int { return cmp.Compare(a.At, b.At) })
		return calls
	}
	var runs []*Logs
	for seed := range uint64(20) {
		runs = append(runs, goodFlows(1000+seed))
	}
	const within = (2000 - flowWay) * 1000
	move := func(a *Arrived, at int64) { a.Done += at - a.At; a.At = at }
	// closer moves one call so that it and the rate before it are within per.
	closer := func(r *rand.Rand, l *Logs, calls []*Arrived, rate int) bool {
		i := r.IntN(len(calls) - rate)
		at := calls[i].At + within - 1 - r.Int64N(200_000)
		if at < calls[i+rate-1].At || at >= calls[i+rate].At {
			return false
		}
		move(calls[i+rate], at)
		return true
	}
	for _, m := range []struct {
		name, rule, kind string
		do               func(r *rand.Rand, l *Logs, calls []*Arrived) bool
	}{
		{"a call too soon, of one", "L14", "one", func(r *rand.Rand, l *Logs, calls []*Arrived) bool { return closer(r, l, calls, 1) }},
		{"a call too soon, of three", "L14", "even", func(r *rand.Rand, l *Logs, calls []*Arrived) bool { return closer(r, l, calls, 3) }},
		{"a call too soon, of a burst", "L14", "burst", func(r *rand.Rand, l *Logs, calls []*Arrived) bool { return closer(r, l, calls, 4) }},
		{"a retry that the limit does not know of", "L14", "one", func(r *rand.Rand, l *Logs, calls []*Arrived) bool {
			a := *calls[r.IntN(len(calls))]
			move(&a, a.At+1+r.Int64N(within-1))
			a.Attempt++
			l.Arrived = append(l.Arrived, a)
			return true
		}},
		{"a start that forgets what was called", "L14", "one", func(r *rand.Rand, l *Logs, calls []*Arrived) bool {
			f := l.Broken[r.IntN(2)]
			for i := 1; i < len(calls); i++ {
				if at := f.To*1000 + r.Int64N(50_000); calls[i-1].At < at && calls[i-1].At > at-within && at < calls[i].At {
					move(calls[i], at)
					return true
				}
			}
			return false
		}},
		{"an earlier due later", "L15", "line", func(r *rand.Rand, l *Logs, calls []*Arrived) bool {
			i := r.IntN(len(calls) - 1)
			a, b := calls[i], calls[i+1]
			if a.Attempt > 1 || b.Attempt > 1 || a.Due >= b.Due || a.At < (a.Due+flowWay)*1000 {
				return false
			}
			for _, x := range calls {
				if x != a && x != b && (x.Timer == a.Timer || x.Timer == b.Timer) {
					return false
				}
			}
			at := a.At
			move(a, b.At)
			move(b, at)
			return true
		}},
		{"a task between two attempts", "L15", "line", func(r *rand.Rand, l *Logs, calls []*Arrived) bool {
			i := 1 + r.IntN(len(calls)-2)
			a, b, x := calls[i-1], calls[i], calls[i+1]
			killed := slices.ContainsFunc(l.Broken, func(f Broken) bool { return f.From > a.At/1000-unsynced && f.From < a.At/1000+2*unsynced })
			if a.Timer != b.Timer || x.Attempt > 1 || killed {
				return false
			}
			move(x, a.Done+1+r.Int64N(b.At-a.Done-1))
			return true
		}},
		{"a call of a paused key", "L16", "even", func(r *rand.Rand, l *Logs, calls []*Arrived) bool {
			a := calls[r.IntN(len(calls))]
			at := a.At/1000 - flowWay - 2 - r.Int64N(500)
			l.Asked = append(l.Asked,
				Asked{Op: Pause, App: "app", Flow: []string{"even-0", "even-*", ""}[r.IntN(3)], Invoked: at - 10, Answered: at, OK: true},
				Asked{Op: Pause, App: "app", Flow: "even", Invoked: at, Answered: at, OK: true})
			return true
		}},
		{"a task that is held for ever", "L1", "one", func(r *rand.Rand, l *Logs, calls []*Arrived) bool {
			a := *calls[r.IntN(len(calls))]
			l.Arrived = slices.DeleteFunc(l.Arrived, func(x Arrived) bool { return x.Timer == a.Timer })
			return true
		}},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for n, try := 0, uint64(0); n < 20; try++ {
				if try > 3000 {
					t.Fatalf("only %d calls to alter", n)
				}
				r := rand.New(rand.NewPCG(try, 6))
				good := runs[try%uint64(len(runs))]
				l := &Logs{slices.Clone(good.Asked), slices.Clone(good.Arrived), good.Broken}
				if !m.do(r, l, of(l, m.kind+"-0")) {
					continue
				}
				n++
				if got := check(t, l); !got.Has(m.rule) {
					t.Fatalf("try %d: %s is not flagged: %s", try, m.rule, got)
				}
			}
		})
	}
}

// TestLimitsInForce: the longest match counts from its answer, a limit of which nobody knows
// whether it is in force limits nothing, and where it is known when a call began the whole
// window is judged.
func TestLimitsInForce(t *testing.T) {
	limit := func(op string, flow string, at int64, rate int) Asked {
		a := Asked{Op: op, App: "app", Flow: flow, Invoked: simStart + at, Answered: simStart + at + 10, OK: true}
		if rate > 0 {
			a.Limit = &Limit{Rate: rate, Per: 1000}
		}
		return a
	}
	unsure := func(a Asked) Asked { a.OK = false; return a }
	failed := func(a Asked) Asked { a.OK, a.Failed = false, true; return a }
	for name, c := range map[string]struct {
		fine  bool
		asked []Asked
		begun []int64 // ms
	}{
		"a window":                     {true, []Asked{limit(Limits, "k-*", 0, 2)}, []int64{500, 500, 1500, 1500}},
		"a ms less":                    {false, []Asked{limit(Limits, "k-*", 0, 2)}, []int64{500, 500, 1499}},
		"another key":                  {true, []Asked{limit(Limits, "l-*", 0, 2)}, []int64{500, 500, 1499}},
		"the longest match is larger":  {true, []Asked{limit(Limits, "k-*", 0, 1), limit(Limits, "k-1", 0, 2)}, []int64{500, 500}},
		"the longest match is smaller": {false, []Asked{limit(Limits, "k-*", 0, 2), limit(Limits, "k-1*", 0, 1)}, []int64{500, 500}},
		"a limit from now on":          {true, []Asked{limit(Limits, "k-*", 0, 1), limit(Limits, "k-*", 600, 1000)}, []int64{500, 700, 700}},
		"a limit that was removed":     {true, []Asked{limit(Limits, "k-*", 0, 1), limit(Limits, "k-*", 600, 0)}, []int64{500, 700, 700}},
		"the same limit again":         {false, []Asked{limit(Limits, "k-*", 0, 1), limit(Limits, "k-*", 600, 1)}, []int64{500, 700}},
		"the same limit of another":    {true, []Asked{limit(Limits, "k-*", 0, 1), limit(Limits, "k-1", 600, 1)}, []int64{500, 700}},
		"a limit that may be in force": {true, []Asked{limit(Limits, "k-*", 0, 1), unsure(limit(Limits, "k-*", 600, 1))}, []int64{500, 700, 700}},
		"a limit that was refused":     {false, []Asked{limit(Limits, "k-*", 0, 1), failed(limit(Limits, "k-*", 600, 9))}, []int64{500, 700, 700}},
		"a pause that has ended":       {true, []Asked{limit(Pause, "k-1", 400, 0), limit(Resume, "k-1", 700, 0)}, []int64{300, 800}},
		"a pause":                      {false, []Asked{limit(Pause, "k-1", 400, 0), limit(Resume, "k-*", 500, 0)}, []int64{800}},
		"a pause of another app":       {true, []Asked{{Op: Pause, App: "other", Invoked: simStart, Answered: simStart, OK: true}}, []int64{800}},
		"a pause until an instant":     {true, []Asked{{Op: Pause, App: "app", Invoked: simStart, Answered: simStart, OK: true, Until: simStart + 500}}, []int64{500}},
	} {
		l := &Logs{Asked: append([]Asked{{Op: Run, Conditions: &Condition{Ended: simEnd}}}, c.asked...)}
		timer := &Timer{ID: "1", App: "app", Name: "n", Definitions: []*Definition{{Flow: "k-1 other"}}}
		for i, at := range c.begun {
			timer.Dues = append(timer.Dues, &Due{At: simStart + int64(i), Eras: []*Era{{}}})
			at = (simStart + at) * 1000
			l.Arrived = append(l.Arrived, Arrived{Timer: "1", Due: simStart + int64(i), App: "app", Name: "n", Attempt: 1, Begun: at, At: at + 700_000, Done: at + 700_001, Code: 200})
		}
		r, err := Judge(l, []*Timer{timer})
		if err != nil {
			t.Fatal(err)
		}
		if (len(r.Violations) == 0) != c.fine {
			t.Errorf("%s: %s", name, r)
		}
	}
}

// TestPlacesOfATerm: tasks that were called when their key had more places may be called in
// turns after it has one. No other task may come between two calls of theirs.
func TestPlacesOfATerm(t *testing.T) {
	for calls, fine := range map[string]bool{
		"ab|abab":   true, // two that had places
		"a|acb":     true, // a has ended with its second call
		"ab|acab":   false,
		"a|aba":     false,
		"|ab":       true,
		"|aba":      false,
		"ab|aabbcc": true,
	} {
		l := &Logs{Asked: []Asked{
			{Op: Run, Conditions: &Condition{Ended: simEnd}},
			{Op: Limits, App: "app", Flow: "k", Invoked: simStart, Answered: simStart, OK: true, Limit: &Limit{Concurrency: 3, Hold: "task"}},
		}}
		timer := &Timer{ID: "1", App: "app", Name: "n", Definitions: []*Definition{{Flow: "k"}}}
		at, attempts := int64(simStart), map[rune]int{}
		for i, c := range calls {
			if at += 100; c == '|' {
				l.Asked = append(l.Asked, Asked{Op: Limits, App: "app", Flow: "k", Invoked: at, Answered: at, OK: true, Limit: &Limit{Concurrency: 1, Hold: "task"}})
				continue
			}
			due := simStart + int64(c-'a')
			if attempts[c]++; attempts[c] == 1 {
				timer.Dues = append(timer.Dues, &Due{At: due, Eras: []*Era{{}}})
			}
			x := Arrived{Timer: "1", Due: due, App: "app", Name: "n", Attempt: attempts[c], Begun: at * 1000, At: at * 1000, Done: at*1000 + 1, Code: 500}
			if !strings.ContainsRune(calls[i+1:], c) {
				x.Code = 200
			}
			l.Arrived = append(l.Arrived, x)
		}
		r, err := Judge(l, []*Timer{timer})
		if err != nil {
			t.Fatal(err)
		}
		if r.Has("L15") == fine {
			t.Errorf("%s: %s", calls, r)
		}
	}
}

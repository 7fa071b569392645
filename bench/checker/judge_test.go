package checker

import (
	"slices"
	"testing"
)

// TestJudge: of a run whose dues are known, each call and each record is held against
// what those know who see the inside.
func TestJudge(t *testing.T) {
	const due = simStart + 10_000
	call := func(attempt, life, code int, at int64) Arrived {
		return Arrived{
			Timer: "1", Due: due, App: "app", Name: "n", Attempt: attempt, At: at * 1000, Done: at*1000 + 500, Code: code,
			Begun: at * 1000, Life: life, Generation: 1,
		}
	}
	again := func(a Arrived) Arrived { a.Redelivered = true; return a }
	kill := Broken{Fault: Kill, From: due + 100, To: due + 300, Life: 1}
	start := func(looked int64) Broken { return Broken{Fault: Start, From: due + 300, To: due + 300, Looked: looked} }
	clock := func(at, by int64) Broken { return Broken{Fault: Clock, From: at, To: at, By: by} }
	taken := []Arrived{call(1, 1, 200, due)}
	final := func(status, reason string, attempts int) *Final {
		return &Final{Due: due, Status: status, Reason: reason, Attempts: attempts, Generation: 1, Ended: due + 600}
	}
	type run struct {
		name    string
		rule    string // that is broken; "": none
		change  func(d *Definition, o *Due)
		arrived []Arrived
		final   *Final
		broken  []Broken
	}
	redriven := func(_ *Definition, o *Due) { o.Redriven = 1 }
	unreached := func(_ *Definition, o *Due) { o.Unreached = true }
	skips := func(d *Definition, _ *Due) { d.Misfire = "skip" }
	stale := func(d *Definition, _ *Due) { d.StaleAfter = 1000 }
	once := func(d *Definition, _ *Due) { d.Delivery = "at_most_once" }
	for _, c := range []run{
		{"taken", "", nil, taken, final("succeeded", "", 1), nil},
		{"no record", "L1", nil, nil, nil, nil},
		{"succeeded, and nobody took it", "L1", nil, []Arrived{call(1, 1, 500, due)}, final("succeeded", "", 1), nil},
		{"no end", "L1", nil, nil, final("retrying", "", 0), nil},
		{"failed, and was taken", "L1", nil, taken, final("failed", "rejected", 1), nil},
		{"unknown, and was taken before a crash", "", once, taken, final("unknown", "may_have_been_sent", 1), []Broken{kill}},
		{"unknown, and another process crashed", "L8", once, taken, final("unknown", "may_have_been_sent", 1), []Broken{{Fault: Kill, From: due + 100, To: due + 300, Life: 2}}},
		{"again after a crash", "", nil, []Arrived{call(1, 1, 200, due), again(call(1, 2, 200, due+300))}, final("succeeded", "", 1), []Broken{kill}},
		{"again after a crash of another", "L4", nil, []Arrived{call(1, 1, 200, due), again(call(1, 1, 200, due+300))}, final("succeeded", "", 1), []Broken{{Fault: Kill, From: due + 100, To: due + 200, Life: 2}}},
		{"again after it was told to end", "L4", nil, []Arrived{call(1, 1, 200, due), again(call(1, 2, 200, due+300))}, final("succeeded", "", 1), []Broken{{Fault: Terminate, From: due + 100, To: due + 200, Life: 1}}},
		{"unmarked after a former process", "L5", nil, []Arrived{
			call(1, 1, 500, due), call(2, 1, 500, due+300), again(call(1, 2, 500, due+800)), call(2, 2, 200, due+1100),
		}, final("succeeded", "", 2), []Broken{{Fault: Kill, From: due + 400, To: due + 700, Life: 1}}},
		{"unmarked after a former process and a clock set back", "", nil, []Arrived{call(1, 1, 500, due), call(1, 2, 200, due+300)}, final("succeeded", "", 1), []Broken{kill, clock(due+400, -1)}},
		{"too soon after another process", "L5", nil, []Arrived{call(1, 1, 500, due), again(call(2, 2, 200, due+150))}, final("succeeded", "", 2), []Broken{{Fault: Terminate, From: due + 100, To: due + 150, Life: 1}}},
		{"a fourth attempt", "L5", nil, []Arrived{call(4, 1, 200, due)}, final("succeeded", "", 4), []Broken{kill}},
		{"a fourth attempt that was asked for", "", redriven, []Arrived{call(4, 1, 200, due)}, final("succeeded", "", 4), nil},
		{"the first reached nobody", "", unreached, []Arrived{call(2, 1, 200, due)}, final("succeeded", "", 2), nil},
		{"there was no first", "L5", nil, []Arrived{call(2, 1, 200, due)}, final("succeeded", "", 2), nil},
		{"at most once, asked for twice", "", func(d *Definition, o *Due) { once(d, o); redriven(d, o) }, []Arrived{call(1, 1, 500, due), call(2, 1, 200, due+1)}, final("succeeded", "", 2), nil},
		{"begun before the clock was set back", "", nil, []Arrived{func() Arrived { a := call(1, 1, 200, due+500); a.Begun = due * 1000; return a }()}, final("succeeded", "", 1), []Broken{clock(due+1, -3_600_000)}},
		{"begun after the clock was set back", "L2", nil, []Arrived{call(1, 1, 200, due+500)}, final("succeeded", "", 1), []Broken{clock(due+1, -3_600_000)}},
		{"begun too early, before the clock was set back", "L2", nil, []Arrived{func() Arrived { a := call(1, 1, 200, due-100); a.Begun = due*1000 - 500_000; return a }()}, final("succeeded", "", 1), []Broken{clock(due-300, -1000)}},
		{"due by a clock that was set ahead", "", nil, []Arrived{call(1, 1, 200, due-5000)}, final("succeeded", "", 1), []Broken{clock(due-5000, 5000)}},
		{"skipped by a start", "", skips, nil, final("skipped", "misfire", 0), []Broken{start(due + misfireAfter + 1)}},
		{"skipped by a start that found it in time", "L1", skips, nil, final("skipped", "misfire", 0), []Broken{start(due + misfireAfter)}},
		{"skipped by a clock", "", skips, nil, final("skipped", "misfire", 0), []Broken{clock(due-1000, misfireAfter+1001)}},
		{"skipped by a clock set ahead by little", "L1", skips, nil, final("skipped", "misfire", 0), []Broken{clock(due-1000, 1001)}},
		{"missed", "", nil, nil, final("missed", "misfire_window", 0), []Broken{start(due + 3_600_001)}},
		{"missed within the window", "L1", nil, nil, final("missed", "misfire_window", 0), []Broken{start(due + 3_600_000)}},
		{"stale too soon", "L1", stale, nil, final("skipped", "stale", 0), nil},
		{"dead by its age too soon", "L1", nil, []Arrived{call(1, 1, 500, due)}, final("dead", "max_age", 1), nil},
		{"dead with attempts left", "L1", nil, []Arrived{call(1, 1, 500, due)}, final("dead", "max_attempts", 1), nil},
		{"cancelled, and another generation ended", "L1", func(_ *Definition, o *Due) { o.Eras[0].Over = true }, nil, func() *Final { f := final("cancelled", "deleted", 0); f.Generation = 2; return f }(), nil},
		{"cancelled", "", func(_ *Definition, o *Due) { o.Eras[0].Over = true }, nil, final("cancelled", "deleted", 0), nil},
	} {
		d := &Definition{
			Schedule: Schedule{Every: 1000}, MisfireWindow: 3_600_000,
			Retry: Retry{MaxAttempts: 3, Backoff: 200, Multiplier: 2, MaxAge: 24 * 3_600_000},
		}
		o := &Due{At: due, Eras: []*Era{{Generation: 1, From: simStart}, {Generation: 2, From: simStart}}, Must: true}
		if c.change != nil {
			c.change(d, o)
		}
		timer := &Timer{ID: "1", App: "app", Name: "n", Definitions: []*Definition{d}, Dues: []*Due{o}}
		if c.final != nil {
			timer.Finals = []*Final{c.final}
		}
		slices.SortFunc(c.broken, func(a, b Broken) int { return int(a.From - b.From) })
		r, err := Judge(&Logs{
			Asked:   []Asked{{Op: Run, Conditions: &Condition{Ended: simEnd, InCall: 10, Recover: 60_000}}},
			Arrived: c.arrived, Broken: c.broken,
		}, []*Timer{timer})
		if err != nil {
			t.Fatal(err)
		}
		if c.rule == "" && len(r.Violations) > 0 || c.rule != "" && !r.Has(c.rule) {
			t.Errorf("%s: want %q, got %s", c.name, c.rule, r)
		}
	}
}

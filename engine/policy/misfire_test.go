package policy

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"xtimer/engine"
	"xtimer/engine/plan"
)

const minute = int64(60_000)

// walk is the decision due by due. Its cost goes with what was missed: it is here to
// hold Decide against.
func walk(d *Triage, t *engine.Timer, p *plan.Plan, after int64, over Spans) {
	old := d.Now - t.Misfire.Window.Milliseconds()
	late := d.Now - MisfireAfter
	var passed []*engine.Task // dues that are not called, each by itself; nil: one that was over
	latest := -1
	for due, ok := p.Next(after); ok && due <= d.Now; due, ok = p.Next(due) {
		switch {
		case over.Has(due):
			passed = append(passed, nil)
		case due < old:
			passed = append(passed, NotCalled(t, due, engine.Missed, engine.ReasonWindow, d.Now))
		case due >= late, p.OneShot(), t.Misfire.Policy == engine.MisfireAll:
			d.Owe = append(d.Owe, Row(t, due))
		default:
			passed = append(passed, NotCalled(t, due, engine.Skipped, engine.ReasonMisfire, d.Now))
			latest = len(passed) - 1
		}
	}
	if latest >= 0 && t.Misfire.Policy == engine.MisfireLatest {
		d.Owe = append(d.Owe, Row(t, passed[latest].Key.Due))
		passed = slices.Delete(passed, latest, latest+1)
	}
	var run *engine.Task
	for _, r := range passed {
		switch {
		case r == nil:
			run = nil
		case run != nil && run.Status == r.Status:
			run.DueLast = r.Key.Due
			run.Count++
		default:
			run = r
			d.Records = append(d.Records, run)
		}
	}
}

// drawTimer draws a timer that was last served at least an hour before now.
func drawTimer(t *rapid.T, now int64) (*engine.Timer, plan.Plan) {
	d := engine.NewDefinition()
	s := &d.Schedule
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		s.At = now - rapid.Int64Range(-20_000, 6*60*minute).Draw(t, "at")
	case 1:
		s.Every = time.Duration(rapid.SampledFrom([]int64{10, 999, 1000, 7001, 60_000, 3_600_000}).Draw(t, "every")) * time.Millisecond
	default:
		s.Cron = rapid.SampledFrom([]string{"*/5 * * * * *", "* * * * *", "*/7 * * * *", "30 1-3 * * *", "*/10 2 * * *", "0 * * * SUN"}).Draw(t, "cron")
		s.TimeZone = rapid.SampledFrom([]string{"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"}).Draw(t, "zone")
	}
	if s.At == 0 {
		s.Jitter = time.Duration(rapid.SampledFrom([]int64{0, 0, 5, 40_000}).Draw(t, "jitter")) * time.Millisecond
		if rapid.Bool().Draw(t, "ends") {
			s.EndAt = now - rapid.Int64Range(-30_000, 2*60*minute).Draw(t, "end")
		}
	}
	d.Misfire = engine.Misfire{
		Policy: rapid.SampledFrom([]engine.MisfirePolicy{engine.MisfireLatest, engine.MisfireSkip, engine.MisfireAll}).Draw(t, "policy"),
		Window: time.Duration(rapid.SampledFrom([]int64{0, 1000, 10_000, 20_000, 30 * minute, 2 * 60 * minute, 48 * 60 * minute}).Draw(t, "window")) * time.Millisecond,
	}
	made := now - 7*60*minute
	timer := &engine.Timer{Definition: d, ID: engine.TimerID(rapid.Uint64Range(1, 1<<62).Draw(t, "id")), Generation: 3, CreatedAt: made}
	if plan.Resolve(timer, nil, made) != nil {
		t.Skip("a schedule that has no due")
	}
	p, err := plan.Of(timer)
	if err != nil {
		t.Fatal(err)
	}
	return timer, p
}

// owed are the dues that rows stand for.
func owed(p *plan.Plan, rows []engine.Owed) map[int64]int {
	m := map[int64]int{}
	for _, o := range rows {
		m[o.Key.Due]++
		for due, ok := p.Next(o.Key.Due); ok && due <= o.To; due, ok = p.Next(due) {
			m[due]++
		}
	}
	return m
}

// A decision by spans is the same as one due by due, and leaves a few rows and records
// for each gap between dues that are over.
func TestDecideIsTheWalk(t *testing.T) {
	changes := []int64{ // of the clocks in Berlin, New York and on Lord Howe, and no change
		time.Date(2026, 3, 29, 3, 0, 0, 0, time.UTC).UnixMilli(), time.Date(2026, 10, 25, 3, 0, 0, 0, time.UTC).UnixMilli(),
		time.Date(2026, 3, 8, 9, 0, 0, 0, time.UTC).UnixMilli(), time.Date(2026, 4, 4, 16, 0, 0, 0, time.UTC).UnixMilli(),
		time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC).UnixMilli(),
	}
	rapid.Check(t, func(t *rapid.T) {
		now := rapid.SampledFrom(changes).Draw(t, "change") + rapid.Int64Range(-10*minute, 3*60*minute).Draw(t, "now")
		timer, p := drawTimer(t, now)
		span := rapid.SampledFrom([]int64{30_000, 5 * minute, 6 * 60 * minute}).Draw(t, "span")
		if timer.Schedule.Every > 0 && timer.Schedule.Every < time.Second {
			span = min(span, 5*minute)
		}
		after := now - rapid.Int64Range(0, span).Draw(t, "after")
		if due, ok := p.Next(now - span/2); ok && rapid.Bool().Draw(t, "on a border") {
			now = due + rapid.SampledFrom([]int64{0, MisfireAfter, timer.Misfire.Window.Milliseconds()}).Draw(t, "border")
			after = now - span
		}
		var over Spans
		for at := after - 1000; at < now+1000 && len(over) < 6; {
			from := at + rapid.Int64Range(1, span/3).Draw(t, "from")
			if rapid.Bool().Draw(t, "a due") { // one that has ended, or a run of them
				from, _ = p.Next(from)
			}
			to := from
			if rapid.Bool().Draw(t, "run") {
				to += rapid.Int64Range(0, span/5).Draw(t, "to")
			}
			over = append(over, [2]int64{from, to})
			at = to
		}
		want, got := Triage{Now: now}, Triage{Now: now}
		walk(&want, timer, &p, after, over)
		open := over.Open(&p, after, now)
		got.Decide(timer, &p, open)
		byDue := func(a, b *engine.Task) int { return a.Key.Compare(b.Key) }
		slices.SortFunc(want.Records, byDue)
		slices.SortFunc(got.Records, byDue)
		if !reflect.DeepEqual(got.Records, want.Records) {
			t.Fatalf("%v\nrecords\n got %v\nwant %v", timer.Misfire, told(got.Records), told(want.Records))
		}
		if !slices.IsSortedFunc(got.Owe, func(a, b engine.Owed) int { return a.Key.Compare(b.Key) }) {
			t.Fatalf("%v: owed are %v, not by due", timer.Misfire, got.Owe)
		}
		if g, w := owed(&p, got.Owe), owed(&p, want.Owe); !maps.Equal(g, w) {
			t.Fatalf("%v: owed are %d dues, want %d", timer.Misfire, len(g), len(w))
		}
		if len(open) > len(over)+1 || len(got.Owe) > len(open)*MaxSingles+1 || len(got.Records) > 2*len(open) {
			t.Fatalf("%d rows and %d records of %d spans", len(got.Owe), len(got.Records), len(open))
		}
		for i := range got.Owe {
			o := &got.Owe[i]
			if o.Generation != 3 || o.Key.Timer != timer.ID || o.NotBefore != o.Key.Due || o.To != 0 && !p.Has(o.To) {
				t.Fatalf("a row is %+v", o)
			}
		}
	})
}

func told(rs []*engine.Task) (out []string) {
	for _, r := range rs {
		out = append(out, fmt.Sprintf("%d to %d ×%d %v", r.Key.Due, r.DueLast, r.Count, r.Status))
	}
	return out
}

// BenchmarkDecide decides what a timer has missed. A due each would be 4,320, 525,600,
// 8,640,000 and 600 of them.
func BenchmarkDecide(b *testing.B) {
	now := time.Date(2026, 11, 20, 16, 59, 30, 0, time.UTC).UnixMilli()
	for _, x := range []struct {
		name   string
		s      engine.Schedule
		policy engine.MisfirePolicy
		down   time.Duration
	}{
		{"minute,zone,72h", engine.Schedule{Cron: "* * * * *", TimeZone: "Europe/Berlin"}, engine.MisfireLatest, 72 * time.Hour},
		{"minute,zone,year", engine.Schedule{Cron: "* * * * *", TimeZone: "Europe/Berlin"}, engine.MisfireLatest, 365 * 24 * time.Hour},
		{"10ms,24h", engine.Schedule{Every: 10 * time.Millisecond}, engine.MisfireLatest, 24 * time.Hour},
		{"second,all,10m", engine.Schedule{Every: time.Second}, engine.MisfireAll, 10 * time.Minute},
	} {
		b.Run(x.name, func(b *testing.B) {
			after := now - x.down.Milliseconds()
			t := &engine.Timer{Definition: engine.NewDefinition(), Generation: 1, CreatedAt: after}
			t.Schedule, t.Misfire.Policy = x.s, x.policy
			if err := plan.Resolve(t, nil, after); err != nil {
				b.Fatal(err)
			}
			for i := 0; b.Loop(); i++ {
				t.ID = engine.TimerID(i)
				p, err := plan.Of(t)
				if err != nil {
					b.Fatal(err)
				}
				d := Triage{Now: now + int64(i%100)}
				d.Decide(t, &p, Spans(nil).Open(&p, after, d.Now))
			}
		})
	}
}

// TestQueueBesideARange: a due of a timer whose dues are called in order is owed as a range behind a range, and as a row
// before one: a range that begins later comes into memory after the row in any case.
func TestQueueBesideARange(t *testing.T) {
	timer := &engine.Timer{ID: 1, Definition: engine.NewDefinition(), Generation: 1}
	timer.Schedule, timer.Overlap = engine.Schedule{Every: time.Second}, engine.OverlapQueue
	if err := plan.Resolve(timer, nil, 0); err != nil {
		t.Fatal(err)
	}
	p, err := plan.Of(timer)
	if err != nil {
		t.Fatal(err)
	}
	for from, want := range map[int64]bool{0: false, 5000: true, 10_000: false, 20_000: false} {
		d := Triage{Now: 30_000, RangedFrom: from}
		d.Call(timer, &p, 10_000, 10_500)
		if len(d.Owe) != 1 || d.Owe[0].Key.Due != 10_000 || d.Owe[0].To != 0 != want {
			t.Errorf("beside a range from %d on: %+v", from, d.Owe)
		}
	}
}

// TestCut: spans that are cut at an instant have the same instants, and none has the instant
// and the next.
func TestCut(t *testing.T) {
	s := Spans{{10, 20}, {30, 30}, {40, 50}}
	for at, want := range map[int64]Spans{
		5: s, 9: s, 20: s, 25: s, 30: s, 50: s, 60: s,
		10: {{10, 10}, {11, 20}, {30, 30}, {40, 50}},
		19: {{10, 19}, {20, 20}, {30, 30}, {40, 50}},
		45: {{10, 20}, {30, 30}, {40, 45}, {46, 50}},
	} {
		if got := s.Cut(at); !slices.Equal(got, want) {
			t.Errorf("at %d: %v, want %v", at, got, want)
		}
	}
}

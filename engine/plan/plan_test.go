package plan

import (
	"slices"
	"testing"
	"time"

	"xtimer/engine"

	"pgregory.net/rapid"
)

// planNow is a Friday before the clocks change in New York: 2026-03-06 17:00 UTC.
var planNow = time.Date(2026, 3, 6, 17, 0, 0, 0, time.UTC).UnixMilli()

// resolved is the timer of a schedule created at now.
func resolved(tb rapid.TB, id engine.TimerID, s engine.Schedule, now int64) (*engine.Timer, Plan) {
	tb.Helper()
	t := &engine.Timer{Definition: engine.NewDefinition(), ID: id, CreatedAt: now}
	t.Schedule = s
	if err := Resolve(t, nil, now); err != nil {
		tb.Fatalf("%+v: %v", s, err)
	}
	p, err := Of(t)
	if err != nil {
		tb.Fatal(err)
	}
	return t, p
}

// duesOf are the dues in (from, to], at most n.
func duesOf(p Plan, from, to int64, n int) []int64 {
	var ds []int64
	for len(ds) < n {
		d, ok := p.Next(from)
		if !ok || d > to {
			break
		}
		ds = append(ds, d)
		from = d
	}
	return ds
}

// repeating draws a schedule that repeats, and is dense enough to be looked at.
func repeating(t *rapid.T) engine.Schedule {
	var s engine.Schedule
	if rapid.Bool().Draw(t, "every") {
		s.Every = time.Duration(rapid.Int64Range(10, 100_000).Draw(t, "ms")) * time.Millisecond
	} else {
		s.Cron = rapid.SampledFrom([]string{"* * * * * *", "*/7 * * * * *", "30 * * * * *", "0 3/10 * * * *", "*/10 1-3 * * *", "30 2 * * *", "0 9 * * 1-5", "* 2 * * * *", "@every 90s", "0 */5 */2 * * *"}).Draw(t, "cron")
		s.TimeZone = rapid.SampledFrom([]string{"", "America/New_York", "Asia/Kolkata"}).Draw(t, "zone")
	}
	s.Jitter = time.Duration(rapid.SampledFrom([]int64{0, 0, 1, 7, 500, 60_000, 86_400_000}).Draw(t, "jitter")) * time.Millisecond
	if rapid.Bool().Draw(t, "starts") {
		s.StartAt = planNow + rapid.Int64Range(-100_000_000, 100_000_000).Draw(t, "start")
	}
	return s
}

// Dues strictly increase; Next is the least due after an instant, from wherever
// one asks; Prev and Count say the same; jitter stays within its bounds and is
// the same each time.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := repeating(t)
		id := engine.TimerID(rapid.Uint64Range(1, 1<<62).Draw(t, "id"))
		_, p := resolved(t, id, s, planNow)
		ds := duesOf(p, 0, engine.MaxDue, 200)
		plain := s
		plain.Jitter = 0
		_, q := resolved(t, id, plain, planNow-2*86_400_000)
		if _, twin := resolved(t, id, s, planNow); !slices.Equal(ds, duesOf(twin, 0, engine.MaxDue, 200)) {
			t.Fatal("the same definition has two sequences of dues")
		}
		q.start = p.start // of an interval: the anchor is the time of creation
		for i, d := range ds {
			if d <= planNow || i > 0 && d <= ds[i-1] {
				t.Fatalf("due %d is %d after %d", i, d, ds[max(i-1, 0)])
			}
			if n := p.nominalOf(d); d-n < 0 || d-n >= max(1, s.Jitter.Milliseconds()) || d >= q.nominal(n) || q.nominal(n-1) != n {
				t.Fatalf("due %d of nominal %d, next %d", d, n, q.nominal(n))
			}
			if s.StartAt > p.nominalOf(d) {
				t.Fatalf("nominal %d is before the start", p.nominalOf(d))
			}
		}
		for range 20 { // in pieces, and anywhere
			i := rapid.IntRange(0, len(ds)-2).Draw(t, "i")
			at := rapid.Int64Range(ds[i], ds[i+1]-1).Draw(t, "at")
			if d, _ := p.Next(at); d != ds[i+1] {
				t.Fatalf("Next(%d) = %d, want %d", at, d, ds[i+1])
			}
			if d, ok := p.Prev(at); !ok || d != ds[i] {
				t.Fatalf("Prev(%d) = %d, want %d", at, d, ds[i])
			}
			j := rapid.IntRange(0, len(ds)-1).Draw(t, "j")
			if n := p.Count(at, ds[j]); n != int64(max(0, j-i)) {
				t.Fatalf("Count(%d, %d) = %d, want %d", at, ds[j], n, j-i)
			}
		}
		if _, ok := p.Prev(planNow); ok {
			t.Fatal("there is a due before valid_from")
		}
	})
}

// MaxRuns leaves exactly as many dues, EndAt all nominals up to it, both the
// fewer; LastDue is the last of them.
func TestPlanEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := repeating(t)
		_, free := resolved(t, 42, s, planNow)
		want := duesOf(free, 0, engine.MaxDue, 400)
		n := rapid.IntRange(1, 300).Draw(t, "runs")
		if rapid.Bool().Draw(t, "max_runs") {
			s.MaxRuns = int64(n)
			want = want[:n]
		}
		if rapid.Bool().Draw(t, "end_at") || s.MaxRuns == 0 {
			i := rapid.IntRange(0, 350).Draw(t, "last")
			if i < len(want) {
				want = want[:i+1]
			}
			s.EndAt = free.nominalOf(duesOf(free, 0, engine.MaxDue, i+1)[i])
			if s.StartAt != 0 && s.EndAt == s.StartAt {
				t.Skip()
			}
		}
		tm, p := resolved(t, 42, s, planNow)
		got := duesOf(p, 0, engine.MaxDue, 1000)
		if !slices.Equal(got, want) || tm.LastDue != want[len(want)-1] {
			t.Fatalf("%+v: %d dues up to %d, want %d up to %d; LastDue %d", s, len(got), got[len(got)-1], len(want), want[len(want)-1], tm.LastDue)
		}
	})
}

// The original lost up to half of these: ticks that do not fall on the full
// hour, derived hour by hour (regressions 1 and 7 of its list).
func TestPlanWindowBorders(t *testing.T) {
	for spec, perHour := range map[string]int{"30 * * * * *": 60, "0 3/10 * * * *": 6, "0 5,35 * * * *": 2, "0 * * * * *": 60, "*/5 * * * * *": 720} {
		for _, zone := range []string{"UTC", "America/New_York"} { // there, its derivation never ended (9)
			_, p := resolved(t, 1, engine.Schedule{Cron: spec, TimeZone: zone}, planNow)
			n := 0
			for h := range int64(96) { // through the change of the clock
				from := planNow + h*3_600_000
				n += len(duesOf(p, from, from+3_600_000, 1<<20))
			}
			if n != 96*perHour {
				t.Errorf("%q in %s: %d ticks, want %d", spec, zone, n, 96*perHour)
			}
		}
	}
}

// An interval neither drifts nor costs more, however far from its anchor.
func TestPlanEvery(t *testing.T) {
	s := engine.Schedule{Every: 333 * time.Millisecond}
	_, p := resolved(t, 1, s, planNow)
	for _, k := range []int64{0, 1, 2, 1000, 1e9, 700e9} {
		if d, ok := p.Next(planNow + k*333); !ok || d != planNow+(k+1)*333 {
			t.Errorf("due %d is %d", k+1, d)
		}
	}
	if d, ok := p.Next(engine.MaxDue - 5); ok {
		t.Errorf("there is a due %d after the end", d)
	}
	s.StartAt = planNow + 10_000
	_, p = resolved(t, 1, s, planNow)
	if d, _ := p.Next(0); d != s.StartAt {
		t.Errorf("the first due is %d, not start_at %d", d, s.StartAt)
	}
}

func TestPlanOneShot(t *testing.T) {
	s := engine.Schedule{At: planNow + 500, Jitter: time.Second}
	tm, p := resolved(t, 7, s, planNow)
	d, ok := p.Next(0)
	if !ok || !p.OneShot() || d < s.At || d >= s.At+1000 || tm.LastDue != d {
		t.Errorf("due %d, %v; LastDue %d", d, ok, tm.LastDue)
	}
	if _, ok := p.Next(d); ok {
		t.Error("there is a second due")
	}
	if _, p = resolved(t, 7, engine.Schedule{At: planNow}, planNow); p.Count(0, engine.MaxDue) != 0 {
		t.Error("what is due at valid_from is derived")
	}
}

func BenchmarkNext(b *testing.B) {
	for _, c := range []struct {
		name string
		s    engine.Schedule
	}{
		{"every", engine.Schedule{Every: 250 * time.Millisecond}},
		{"every_jitter", engine.Schedule{Every: 250 * time.Millisecond, Jitter: time.Second}},
		{"minute", engine.Schedule{Cron: "* * * * *"}},
		{"workdays_NY", engine.Schedule{Cron: "0 9 * * 1-5", TimeZone: "America/New_York"}},
		{"workdays_NY_jitter", engine.Schedule{Cron: "0 9 * * 1-5", TimeZone: "America/New_York", Jitter: time.Minute}},
		{"yearly_NY", engine.Schedule{Cron: "@yearly", TimeZone: "America/New_York"}},
	} {
		_, p := resolved(b, 1, c.s, planNow)
		b.Run(c.name+"/same", func(b *testing.B) { // as a million timers of one spec
			b.ReportAllocs()
			for b.Loop() {
				p.Next(planNow)
			}
		})
		b.Run(c.name+"/walk", func(b *testing.B) { // each due after the other
			b.ReportAllocs()
			at, ok := planNow, false
			for b.Loop() {
				if at, ok = p.Next(at); !ok {
					at = planNow
				}
			}
		})
	}
}

func BenchmarkPlanOf(b *testing.B) {
	t, _ := resolved(b, 1, engine.Schedule{Cron: "0 9 * * 1-5", TimeZone: "America/New_York"}, planNow)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Of(t); err != nil {
			b.Fatal(err)
		}
	}
}

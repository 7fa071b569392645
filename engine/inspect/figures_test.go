package inspect

import (
	"context"
	"fmt"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
)

// Figures of the last minute and hour, by app and target; what is over goes.
func TestFigures(t *testing.T) {
	f, now := NewFigures(), int64(1_763_658_000_000)
	end := func(app string, s engine.TaskStatus, at int64) {
		f.Ended(&engine.Task{Key: engine.Key{Due: at}, App: app, Status: s, Ended: at, Lateness: 2 * time.Millisecond, Attempts: make([]engine.Attempt, 1)})
		f.Attempt(app, "http://x", at, s == engine.Succeeded, 30*time.Millisecond)
	}
	end("a", engine.Dead, now-50*minute)
	for range 3 {
		end("a", engine.Succeeded, now)
	}
	f.Ended(&engine.Task{App: "a", Status: engine.Skipped, Ended: now, Count: 1000})
	x := f.Of("a", now)
	if x.Hour.Ended != [10]int64{engine.Succeeded: 3, engine.Dead: 1, engine.Skipped: 1000} || x.Minute.Ended != [10]int64{engine.Succeeded: 3, engine.Skipped: 1000} {
		t.Errorf("%+v", x)
	}
	if rate, ok := x.Hour.SuccessRate(); !ok || rate != 0.75 || x.Hour.Called != 4 || x.Minute.Called != 3 {
		t.Errorf("%v %v %+v", rate, ok, x)
	}
	if p := x.Hour.Lateness[1]; p < 1.8 || p > 2.2 {
		t.Errorf("p99 is %v ms late", p)
	}
	if len(x.Targets) != 1 || x.Targets[0].OK != 3 || x.Targets[0].Failed != 1 || x.Targets[0].Took[0] < 28 || x.Targets[0].Took[0] > 32 {
		t.Errorf("%+v", x.Targets)
	}
	if x = f.Of("a", now+2*hour); x.Hour.Called != 0 || len(x.Targets) != 0 || x.SinceStart[engine.Succeeded] != 3 {
		t.Errorf("two hours later: %+v", x)
	}
	if _, ok := x.Hour.SuccessRate(); ok {
		t.Error("nothing was called, at a rate")
	}
}

// Apps and targets are bounded: those that are idle make room, those with a token stay.
func TestFiguresAreBounded(t *testing.T) {
	f, now := NewFigures(), int64(1_763_658_000_000)
	f.Keep([]string{"kept"})
	end := func(app string, at int64) { f.Ended(&engine.Task{App: app, Status: engine.Succeeded, Ended: at}) }
	for i := range 2 * maxApps {
		end(fmt.Sprint(i), now)
	}
	if n := len(f.Apps()); n != maxApps {
		t.Errorf("%d apps have figures", n)
	}
	now += idle + pruneEvery
	end("new", now)
	if n := len(f.Apps()); n != 2 || f.Of("new", now).SinceStart[engine.Succeeded] != 1 {
		t.Errorf("%d apps have figures", n)
	}
	for i := range 3 * maxTargets {
		f.Attempt(fmt.Sprint("app", i%(maxApps/2)), fmt.Sprint("http://", i), now, true, 0)
	}
	if n := f.targets.Load(); n != maxTargets {
		t.Errorf("%d targets have figures", n)
	}
}

// A task that ends and a call cost no memory once their app is known.
func TestFiguresCostNothing(t *testing.T) {
	f, x := NewFigures(), &engine.Task{App: "a", Status: engine.Succeeded, Ended: 1_763_658_000_000, Attempts: make([]engine.Attempt, 1)}
	if n := testing.AllocsPerRun(1000, func() {
		f.Ended(x)
		f.Attempt("a", "http://x", x.Ended, true, time.Millisecond)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFigures(b *testing.B) {
	f, x := NewFigures(), &engine.Task{App: "a", Status: engine.Succeeded, Ended: 1_763_658_000_000, Attempts: make([]engine.Attempt, 1)}
	for b.Loop() {
		f.Ended(x)
		f.Attempt("a", "http://x", x.Ended, true, time.Millisecond)
	}
}

// The targets of an app are those of its calls and those that have work, the busiest first.
func TestTargetsOfAnApp(t *testing.T) {
	now := int64(1_763_658_000_000)
	a := Apps{
		Figures: NewFigures(), Now: func() int64 { return now },
		Census: NewCensus(func(context.Context, engine.TimerFilter, string, int) ([]*engine.Timer, string, error) {
			return nil, "", nil
		},
			func() int64 { return now }, func(f func(context.Context)) { go f(t.Context()) }),
		Lanes: func(selected func(string) bool) (ls []fair.LaneStats) {
			for i := range appTargets + 5 {
				if selected("a") {
					l := fair.LaneStats{App: "a", Target: fmt.Sprint("http://", i), InFlight: 1, Waiting: i, Limit: 48, Answering: true}
					keyed := l // another lane to the same target
					keyed.Flow, keyed.InFlight, keyed.Waiting = "k", 0, 0
					ls = append(ls, l, keyed)
				}
			}
			return ls
		},
		Stored: func(l engine.Lane, inMemory int64) int64 {
			if l == engine.LaneOf("a", "http://3", "") {
				return 1003 - inMemory
			}
			return 0
		},
	}
	a.Figures.Attempt("a", "http://gone", now, false, time.Second)
	p := a.Page(t.Context(), "", "", 10)
	if len(p.Apps) != 1 || !p.Count.Whole {
		t.Fatalf("%+v", p)
	}
	x := p.Apps[0]
	if x.InFlight != 25 || x.Waiting != 24*25/2+1000 || len(x.Targets) != appTargets || x.More != 6 {
		t.Errorf("%+v", x)
	}
	if x.Targets[0].Target.Target != "http://gone" || x.Targets[1].Target.Target != "http://3" || x.Targets[1].Waiting != 1003 {
		t.Errorf("%+v", x.Targets)
	}
}

// TestAppOfManyTargets: what a page costs is in proportion to its targets, and not to their
// square, which was minutes for so many.
func TestAppOfManyTargets(t *testing.T) {
	const most = 300_000
	lanes := make([]fair.LaneStats, most)
	for i := range lanes {
		lanes[i] = fair.LaneStats{App: "a", Target: fmt.Sprintf("https://%06d.example.com", i), Waiting: 1}
	}
	now := func() int64 { return 1_763_658_000_000 }
	a := Apps{
		Figures: NewFigures(), Now: now, Lanes: func(func(string) bool) []fair.LaneStats { return lanes },
		Census: NewCensus(func(context.Context, engine.TimerFilter, string, int) ([]*engine.Timer, string, error) {
			return nil, "", nil
		}, now, func(f func(context.Context)) { go f(t.Context()) }),
		Stored: func(engine.Lane, int64) int64 { return 0 },
	}
	a.Figures.Attempt("a", lanes[7].Target, now(), true, time.Second)
	began := time.Now()
	p := a.Page(t.Context(), "a", "", 1)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("a page took %v", took)
	}
	if x := p.Apps[0]; x.Waiting != most || x.More != most-appTargets || x.Targets[0].Target.Target != lanes[7].Target || x.Targets[0].Waiting != 1 {
		t.Errorf("%d wait, %d targets are left out, the first is %+v", x.Waiting, x.More, x.Targets[0])
	}
}

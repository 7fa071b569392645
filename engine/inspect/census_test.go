package inspect

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
)

// The dues of each hour are those that the plan gives one by one.
func TestForecast(t *testing.T) {
	from := time.Date(2027, 3, 27, 22, 17, 3, 250_000_000, time.UTC).UnixMilli()
	schedules := map[string]engine.Schedule{
		"every":       {Every: 7 * time.Second},
		"a cron":      {Cron: "*/5 * * * *"},
		"the same":    {Cron: "*/5 * * * *"},
		"a zone":      {Cron: "*/30 2 * * *", TimeZone: "Europe/Berlin"},
		"jitter":      {Cron: "* * * * *", Jitter: 90 * time.Second},
		"bounded":     {Cron: "* * * * *", EndAt: from + 30*hour},
		"runs":        {Every: time.Minute, MaxRuns: 500},
		"once":        {At: from + 100*hour},
		"past":        {At: from - 1},
		"full hours":  {Cron: "0 * * * *"},
		"an interval": {Cron: "@every 61m"},
		"beyond":      {At: from + 1000*hour},
	}
	f := newForecaster(from)
	for name, s := range schedules {
		timer := &engine.Timer{ID: 7, Status: engine.Enabled, CreatedAt: from - 3*hour, ValidFrom: from - 3*hour, Anchor: from - 3*hour, At: s.At}
		timer.Schedule = s
		if s.EndAt != 0 || s.MaxRuns != 0 {
			timer.LastDue = from + 30*hour
		}
		if name == "the same" {
			timer.ID = 8
		}
		p, err := plan.Of(timer)
		if err != nil {
			t.Fatal(name, err)
		}
		var want [countedHours]int64
		for due, ok := p.Next(from); ok && due < (from/hour+countedHours)*hour; due, ok = p.Next(due) {
			want[due/hour-from/hour]++
		}
		var x counted
		f.count(timer, &x)
		var got [countedHours]int64
		copy(got[:], x.dues)
		if got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// A census counts all timers by app and status; while the first is under way its numbers
// are lower bounds, and a failure leaves the former one.
func TestCensus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow time.Duration
		var fails error
		timers := []*engine.Timer{}
		for i := range 3 * censusPage {
			x := &engine.Timer{ID: engine.TimerID(i + 1), Status: engine.Enabled, Anchor: 1, CreatedAt: 1, ValidFrom: 1}
			x.App, x.Schedule.Every = "a", time.Hour
			if i%2 == 0 {
				x.App, x.Status = "b", engine.Disabled
			}
			timers = append(timers, x)
		}
		list := func(_ context.Context, _ engine.TimerFilter, after string, limit int) (ts []*engine.Timer, next string, err error) {
			time.Sleep(slow)
			at := len(after)
			if at+limit < len(timers) {
				next = string(make([]byte, at+limit))
			}
			return timers[at:min(at+limit, len(timers))], next, fails
		}
		now := func() int64 { return time.Now().UnixMilli() }
		c := NewCensus(list, now, func(f func(context.Context)) { go f(t.Context()) })
		slow = 60 * time.Millisecond
		n := c.Look(t.Context())
		if a, exact := n.Of("a"); exact || a.Enabled != censusPage/2 || n.At == 0 {
			t.Errorf("the first page: %v %v", a.Counts, exact)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		slow = 0
		c.Look(t.Context())
		synctest.Wait()
		n = c.Look(t.Context())
		all, exact := n.Of("")
		if !exact || all.Enabled != 3*censusPage/2 || all.Disabled != 3*censusPage/2 {
			t.Errorf("%v %v", all.Counts, exact)
		}
		a, _ := n.Of("a")
		if dues, first := n.Hours(&a, now()+hour, 3); len(dues) != 3 || dues[0] != a.Enabled || first != (now()+hour)/hour*hour {
			t.Errorf("%v from %v", dues, first)
		}
		if none, exact := n.Of("none"); !exact || none.Enabled != 0 {
			t.Errorf("%v %v", none.Counts, exact)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		fails = errors.New("away")
		if again := c.Look(t.Context()); again.At != n.At {
			t.Error("a census that failed took the place of one that did not")
		}
	})
}

// A reader of a small store gets a census of now. One of a large store gets the last
// census at once, while one census, and no more, is under way; without a reader none is.
func TestCensusKeepsNoReaderWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, begun := time.Duration(0), 0
		list := func(context.Context, engine.TimerFilter, string, int) ([]*engine.Timer, string, error) {
			begun++
			time.Sleep(slow)
			return nil, "", nil
		}
		now := func() int64 { return time.Now().UnixMilli() }
		c := NewCensus(list, now, func(f func(context.Context)) { go f(t.Context()) })
		look := func(waits time.Duration) *Count {
			t.Helper()
			asked := time.Now()
			n := c.Look(t.Context())
			if took := time.Since(asked); took != waits {
				t.Errorf("a reader waited for %v, want %v", took, waits)
			}
			return n
		}
		slow = 10 * time.Millisecond
		look(slow)
		time.Sleep(time.Hour)
		synctest.Wait()
		second := now()
		if n := look(slow); n.At != second {
			t.Errorf("the store is small: the census is of %d, want %d", n.At, second)
		}
		synctest.Wait()
		slow = time.Minute
		time.Sleep(time.Hour)
		third := now()
		if n := look(censusWait); n.At != second {
			t.Errorf("the store has grown: the census is of %d, want %d", n.At, second)
		}
		look(0)
		time.Sleep(time.Hour)
		synctest.Wait()
		if begun != 3 {
			t.Errorf("%d censuses, want 3", begun)
		}
		fourth := now()
		for range 3 {
			if n := look(0); n.At != third {
				t.Errorf("the census is of %d, want %d", n.At, third)
			}
		}
		time.Sleep(slow)
		synctest.Wait()
		if begun != 4 {
			t.Errorf("%d censuses, want 4", begun)
		}
		if n := look(0); n.At != fourth {
			t.Errorf("the census is of %d, want %d", n.At, fourth)
		}
	})
}

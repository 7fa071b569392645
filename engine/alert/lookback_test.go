package alert

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// fails tells of the failures of n timers that were due so long ago, at once and in reverse
// order, and returns their records.
func (w *world) fails(first, n int, due time.Duration) (records []engine.Record) {
	now := time.Now().UnixMilli()
	for i := n - 1; i >= 0; i-- {
		t := &engine.Task{Key: engine.Key{Timer: engine.TimerID(first + i), Due: now - due.Milliseconds()}, App: "shop", Name: fmt.Sprint("t", first+i), Status: engine.Dead, Ended: now}
		records = append(records, engine.Record{Key: t.Key, Status: t.Status, Encoded: engine.AppendTask(nil, t)})
		w.Ended(t)
	}
	return records
}

func (w *world) settles(records []engine.Record) {
	w.Helper()
	if err := w.cold.Settle(w.Context(), &engine.Settlement{Owner: "n", Tasks: records}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) counted(want int64) {
	w.Helper()
	sum := int64(0)
	for _, i := range w.Incidents("") {
		sum += i.Count
	}
	if sum != want {
		w.Errorf("%d failures are counted, want %d", sum, want)
	}
}

// Failures at once, many times what the ring takes, are counted exactly, whenever they come
// into history, and a success after them ends the incident.
func TestOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.ring.events.most = 500
		w.channel(18)
		w.rule("r", func(r *Rule) { r.By, r.Match.Label = "app", "team=a" })
		w.rule("other", func(r *Rule) { r.By, r.Match.NamePrefix = "app", "x" })
		w.run()
		for i := range 10 {
			w.fails(i*10_000+1, 10_000, time.Second)
			time.Sleep(time.Second)
		}
		if w.ring.lost.Get() == 0 {
			t.Error("the ring was never full")
		}
		w.says(time.Minute, "incident.opened")
		w.counted(100_000)
		w.ends(7, engine.Succeeded)
		if m := w.says(11*time.Minute, "incident.recovered"); m[0].Incident.Count != 100_000 {
			t.Errorf("%d failures were told", m[0].Incident.Count)
		}
		w.stop()
	})
}

// overfull is a world with 4,500 failures, of which 1,500 find room.
func overfull(t *testing.T) (*world, []engine.Record) {
	w := newWorld(t, memory.NewCold())
	w.ring.events.most, w.ring.briefs.most = 500, 1000
	w.channel(18)
	w.rule("r", func(r *Rule) { r.By = "app" })
	return w, w.fails(1, 4500, 25*time.Hour)
}

// What found no room behind the ring either is read from history, once, also what comes there
// late and was due long ago.
func TestGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, records := overfull(t)
		w.run()
		w.says(2*time.Second, "incident.opened")
		w.counted(1500)
		w.settles(records[:3000])
		w.fails(1_000_000, 10, time.Second)
		w.says(time.Minute)
		w.counted(3010)
		w.settles(records[3000:])
		w.says(time.Minute)
		w.counted(4510)
		if len(w.gaps) != 0 {
			t.Errorf("%+v", w.gaps)
		}
		w.stop()
	})
}

// A record that cannot be read is not counted, and keeps no other from being counted.
func TestGapWithADamagedRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, records := overfull(t)
		w.bad = records[4000].Key
		w.run()
		w.settles(records)
		w.says(2*time.Minute, "incident.opened")
		w.counted(4499)
		if len(w.gaps) != 0 {
			t.Errorf("%+v", w.gaps)
		}
		w.stop()
	})
}

// While definitions cannot be read that a rule needs, failures wait.
func TestAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.rule("r", func(r *Rule) { r.Match.Label = "team=a" })
		w.run()
		w.away.Store(true)
		w.ends(1, engine.Dead)
		w.says(time.Minute)
		w.away.Store(false)
		w.says(2*time.Second, "incident.opened")
		w.stop()
	})
}

// A task that fails again after a redrive counts again.
func TestFailsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.rule("r", func(*Rule) {})
		w.run()
		task := engine.Task{Key: engine.Key{Timer: 1, Due: 1}, App: "shop", Name: "t1", Status: engine.Dead}
		for range 2 {
			task.Ended = time.Now().UnixMilli()
			w.Ended(&task)
			time.Sleep(time.Minute)
		}
		w.says(time.Second, "incident.opened")
		w.counted(2)
		w.stop()
	})
}

// What ended while no process ran is judged in the order of the ends: failures that are far
// apart are not three within a time.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		w := newWorld(t, cold)
		w.channel(60)
		w.rule("r", func(r *Rule) { r.By, r.After, r.Within = "app", 3, time.Minute })
		w.run()
		w.ends(1, engine.Dead)
		w.says(10 * time.Second)
		w.stop()
		for i := range 4 {
			time.Sleep(time.Hour)
			w.settled(engine.TimerID(i+2), engine.Dead)
		}
		w = newWorld(t, cold)
		w.run()
		w.says(time.Minute)
		w.stop()
	})
}

// A process that ends while failures are to be read from history, or wait, leaves them to the next
// one: a cursor is stored that does not pass them.
func TestStopWithFailuresThatAreNotJudged(t *testing.T) {
	for _, waiting := range []int{500, 1000} {
		synctest.Test(t, func(t *testing.T) {
			cold := memory.NewCold()
			w := newWorld(t, cold)
			w.ring.events.most, w.ring.briefs.most = 200, waiting-200
			w.loads = time.Second
			w.channel(60)
			w.rule("r", func(r *Rule) { r.Repeat, r.Match.Label = 0, "team=a" })
			w.run()
			time.Sleep(time.Minute)
			records := w.fails(1, 900, time.Second)
			time.Sleep(1500 * time.Millisecond)
			records = append(records, w.fails(10_000, 1, time.Second)...)
			synctest.Wait()
			w.stop()
			w.settles(records)
			w = newWorld(t, cold)
			w.run()
			time.Sleep(time.Minute)
			w.counted(901)
			w.stop()
		})
	}
}

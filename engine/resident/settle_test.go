package resident

import (
	"slices"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// A shard without tasks has its watermark written when all are, and its ranges that are over
// removed at once.
func TestIdleShard(t *testing.T) {
	now := int64(1_000_000)
	m := New(Config{
		Owned: engine.AllShards, Now: func() time.Time { return time.UnixMilli(now) }, DiskCritical: func() bool { return false },
	})
	const shard = 7
	settle := func(marks bool) engine.Settlement {
		var s engine.Settlement
		if c := m.Capture(shard, m.Pins.Lowest(now), now, marks, false, &s); c.Lines > 0 {
			m.Release(&c, 0)
		}
		return s
	}
	want := func(when string, s engine.Settlement, watermark int64, paid ...engine.Key) {
		t.Helper()
		var marks []engine.Mark
		if watermark > 0 {
			marks = []engine.Mark{{Shard: shard, W: watermark}}
		}
		if !slices.Equal(s.Marks, marks) || !slices.Equal(s.Pay, paid) || len(s.Tasks)+len(s.Owe) > 0 {
			t.Errorf("%s: %+v, want the watermark %d and the rows %v removed", when, s, watermark, paid)
		}
	}
	want("the first settle", settle(true), now)
	now += 500
	want("nothing to settle", settle(false), 0)
	k := engine.Key{Timer: shard, Due: 5000}
	m.shards[shard].paid = []engine.Key{k}
	m.GiveBack(&Captured{sh: &m.shards[shard]})
	want("a range is over", settle(false), now, k)
	now += 500
	want("a range was over", settle(false), 0)
	want("all are written", settle(true), now)
}

// A call that is under way holds the watermark back. When a result of the shard is stored that the
// watermark has passed, the watermark goes on all the same, once: a cold tier that has lost the
// result is known by it. A result that the watermark has not passed waits with the call.
func TestWatermarkOfAStoredResult(t *testing.T) {
	now := int64(1_000_000)
	m := New(quietConfig(&now))
	sh, lv := joined(t, m, everySecond())
	capture := func() (engine.Settlement, int64) {
		var s engine.Settlement
		c := m.Capture(lv.def.ID.Shard(), m.Pins.Lowest(now), now, false, false, &s)
		m.Release(&c, 0)
		return s, sh.watermark
	}
	begin := func(due int64) *Attempt {
		a, _, _ := m.Begin(sh.take(lv, due, now), now, &Body{})
		a.Enter()
		a.Leave(true)
		return a
	}
	end := func(a *Attempt) { a.End(time.UnixMilli(now), engine.Outcome{Class: engine.ClassOK}) }

	old := begin(now)
	now += settleWait + 1000
	if s, w := capture(); len(s.Owe) != 1 || w < now-settleWait {
		t.Fatalf("the first call got no row: %d rows, watermark %d", len(s.Owe), w)
	}
	mute := begin(sh.watermark + 1)
	young := begin(now)
	end(young)
	if s, w := capture(); len(s.Tasks)+len(s.Owe) != 0 || w >= now-settleWait+1 {
		t.Fatalf("the watermark %d passes a call that is under way; %d results, %d rows", w, len(s.Tasks), len(s.Owe))
	}
	end(old)
	before := sh.watermark
	s, w := capture()
	if w <= before || len(s.Marks) != 1 || len(s.Tasks) != 2 || len(s.Owe) != 1 {
		t.Errorf("watermark %d, before %d; marks %v, %d results, %d rows", w, before, s.Marks, len(s.Tasks), len(s.Owe))
	}
	end(mute)
}

// The clock is set back during a call, and the timer is changed. The record of the call, which said that it runs, is stored
// when it has ended. The row goes when the watermark has passed the due: else a later generation might call the due again.
func TestEndOfAFormerGenerationAheadOfTheWatermark(t *testing.T) {
	now := int64(5_000_000)
	m := New(quietConfig(&now))
	def := everySecond()
	sh, lv := joined(t, m, def)
	sh.watermark = now - 1000
	a, _, _ := m.Begin(sh.take(lv, now, now), now, &Body{})
	a.Enter()
	a.Leave(true)
	now -= 3_600_000
	next := *def
	next.Version, next.Generation, next.Status, next.ValidFrom = 2, 2, engine.Disabled, now
	c := engine.Change{Timer: &next, ID: def.ID, At: now}
	p, err := plan.Of(def)
	if err != nil {
		t.Fatal(err)
	}
	if inFlight, _ := m.Cancel(&c, &policy.Ending{Former: def, Reason: engine.ReasonDisabled, At: now, UpTo: now}, &p); inFlight != 1 || len(c.Owe) != 1 {
		t.Fatalf("the change leaves %d calls with %d rows", inFlight, len(c.Owe))
	}
	m.Replace(def, &next, engine.ReasonDisabled, now)
	a.End(time.UnixMilli(now), engine.Outcome{Class: engine.ClassOK, Sent: time.UnixMilli(now)})
	due := now + 3_600_000
	for _, x := range []struct {
		when         string
		now          int64
		stores       bool
		records, pay int
	}{
		{"is lost", now, false, 1, 0},
		{"is stored", now, true, 1, 0},
		{"has nothing more", now, true, 0, 0},
		{"passes the due", due, true, 1, 1},
	} {
		now = x.now
		var s engine.Settlement
		c := m.Capture(def.ID.Shard(), m.Pins.Lowest(now), now, false, false, &s)
		if x.stores {
			m.Release(&c, 0)
		} else {
			m.GiveBack(&c)
		}
		if len(s.Tasks) != x.records || len(s.Pay) != x.pay || x.records > 0 && s.Tasks[0].Status != engine.Succeeded {
			t.Errorf("a settle that %s stores %+v and removes the rows %v", x.when, s.Tasks, s.Pay)
		}
		if is := sh.tasks.find(engine.Key{Timer: def.ID, Due: due}) != nil; is != (x.pay == 0) {
			t.Errorf("after a settle that %s the task is in memory: %v", x.when, is)
		}
	}
}

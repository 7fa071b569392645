package resident

import (
	"slices"
	"testing"
	"time"

	"xtimer/engine"
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

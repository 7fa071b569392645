package resident

import (
	"slices"
	"testing"
	"time"

	"xtimer/engine"
)

// A shard without tasks has its watermark written every 10 s and at the end of a drain, and
// its ranges that are over removed at once.
func TestIdleShard(t *testing.T) {
	now := int64(1_000_000)
	m := New(Config{
		Owned: engine.AllShards, Now: func() time.Time { return time.UnixMilli(now) }, DiskCritical: func() bool { return false },
	})
	const shard = 7
	settle := func(last bool) engine.Settlement {
		var s engine.Settlement
		if c := m.Capture(shard, m.Pins.Lowest(now), now, last, &s); c.Lines > 0 {
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
	want("the first settle", settle(false), now)
	now += markEvery - 1
	want("before 10 s", settle(false), 0)
	now++
	want("after 10 s", settle(false), now)
	now += 500
	over := engine.Key{Timer: shard, Due: 5000}
	m.shards[shard].paid = []engine.Key{over}
	want("a range is over", settle(false), now, over)
	now += 500
	want("a range was over", settle(false), 0)
	want("the end of a drain", settle(true), now)
}

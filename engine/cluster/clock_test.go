package cluster

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// A node whose clock is not the median of those of the nodes and of the table's differs.
func TestClockVotes(t *testing.T) {
	for _, x := range []struct {
		own    int64
		others []int64
		want   bool
	}{
		{0, nil, false},
		{5000, nil, true},
		{-5000, nil, true},
		{5000, []int64{0, 0}, true},
		{-5000, []int64{0, 0}, true},
		{5000, []int64{0}, true},
		{5000, []int64{5000, 5000}, false}, // the database is wrong
		{0, []int64{5000, 5000, 5000}, true},
		{501, []int64{0, 0}, true},
		{500, []int64{0, 0}, false},
		{-500, []int64{0, 0}, false},
		{400, []int64{-300, 200}, false},
	} {
		c := clock{wall: time.Now}
		c.skew.Store(x.own)
		nodes := []engine.Node{{Life: 1, Skew: 99_000}, {Skew: 77_000}} // its own row of before, and a dead node
		for i, skew := range x.others {
			nodes = append(nodes, engine.Node{Life: uint64(i + 2), Skew: skew})
		}
		if got := c.vote(1, nodes); got != x.want {
			t.Errorf("%d ms beside %d: differs %v", x.own, x.others, got)
		}
	}
}

// A clock that is set is noticed before the next look, and measured by it; a look that took
// long measures only by how much the clock was set.
func TestClockIsSet(t *testing.T) {
	boot, wall := time.Hour, time.UnixMilli(1_000_000)
	c := clock{wall: func() time.Time { return wall }, boot: func() time.Duration { return boot }}
	pass := func(d time.Duration) { boot, wall = boot+d, wall.Add(d) }
	look := func(took time.Duration, at int64) {
		from := boot
		pass(took)
		c.look(from, at, 1, nil)
	}
	look(20*time.Millisecond, wall.UnixMilli()+10)
	if pass(time.Minute); c.isSet() || c.skew.Load() != 0 {
		t.Errorf("set %v, %d ms ahead", c.isSet(), c.skew.Load())
	}
	for _, d := range []time.Duration{600 * time.Millisecond, -600 * time.Millisecond, 5 * time.Second} {
		true_ := wall.UnixMilli() - c.skew.Load()
		if wall = wall.Add(d); !c.isSet() {
			t.Errorf("a step of %v is not noticed", d)
		}
		look(0, true_)
		if c.isSet() {
			t.Errorf("a step of %v stands after the look", d)
		}
	}
	if got := c.skew.Load(); got != 5000 {
		t.Errorf("%d ms ahead", got)
	}
	look(501*time.Millisecond, wall.UnixMilli()-5000)
	if got := c.skew.Load(); got != 5000 {
		t.Errorf("%d ms ahead after a look that took long", got)
	}
	wall = wall.Add(-3 * time.Second)
	look(2*time.Second, wall.UnixMilli()-2000)
	if got := c.skew.Load(); got != 2000 || c.isSet() {
		t.Errorf("%d ms ahead, set %v, after a step back and a look that took long", got, c.isSet())
	}
	for _, x := range []struct {
		ahead, want int64
		differs     bool
	}{{100, 100, false}, {2000, 2000, true}, {-2000, -1300, true}} {
		fresh := clock{wall: c.wall, boot: c.boot}
		from, at := boot, wall.UnixMilli()-x.ahead
		pass(700 * time.Millisecond)
		if fresh.look(from, at, 1, nil); fresh.skew.Load() != x.want || fresh.differs.Load() != x.differs {
			t.Errorf("by a first look that took long, a clock that is %d ms ahead is %d, and differs %v", x.ahead, fresh.skew.Load(), fresh.differs.Load())
		}
	}
}

// While its clock is wrong, a node keeps the time that it had, before the next look and after, also when it is alone. The
// node follows a clock that agrees with the others again, and a clock that runs as fast as a clock may.
func TestRightTime(t *testing.T) {
	truth, boot, ahead, rate := time.UnixMilli(1_000_000), time.Hour, time.Duration(0), 1.0
	c := clock{wall: func() time.Time { return truth.Add(ahead) }, boot: func() time.Duration { return boot }, beaten: 1800 * time.Millisecond}
	others, table := []engine.Node{{Life: 2}, {Life: 3}}, time.Duration(0)
	pass := func(d time.Duration) { truth, boot = truth.Add(d), boot+time.Duration(rate*float64(d)) }
	look := func() { c.look(boot, truth.Add(table).UnixMilli(), 1, others) }
	want := func(when string, off time.Duration) {
		t.Helper()
		if got := c.now().Sub(truth); got != off {
			t.Errorf("%s: the time is %v off, want %v", when, got, off)
		}
	}
	ahead = time.Minute
	want("before the first look", ahead)
	look()
	want("a wrong clock at the start", ahead)
	ahead = 0
	want("a clock that is set right, before the next look", time.Minute)
	look()
	want("a right clock", 0)
	for _, step := range []time.Duration{time.Hour, -time.Hour, 2 * time.Second} {
		pass(200 * time.Millisecond)
		ahead = step
		want("a clock that was set", 0)
		look()
		want("a wrong clock", 0)
		pass(200 * time.Millisecond)
		others = nil
		look()
		want("a wrong clock of a node that is alone", 0)
		ahead /= 2
		look()
		want("a clock that is set and still wrong", 0)
		ahead, others = 0, []engine.Node{{Life: 2}, {Life: 3}}
		look()
		want("a clock that is right again", 0)
	}
	ahead = 400 * time.Millisecond
	want("a clock that is a little ahead", ahead)
	look()
	want("a clock that is a little ahead", ahead)
	ahead, rate = 0, 1.5
	look()
	pass(30 * time.Second)
	want("a clock beside one that runs faster, after 30 s without a look", 0)
	rate = 1
	look()
	for _, step := range []time.Duration{time.Hour, -time.Minute} {
		table = step
		for i := range others { // one after the other tells of the clock that the table has now
			pass(time.Second)
			look()
			want("a table whose clock was set", 0)
			others[i].Skew = -step.Milliseconds()
		}
		look()
		want("a table that has another clock", 0)
		table, others = 0, []engine.Node{{Life: 2}, {Life: 3}}
		look()
	}
	others = []engine.Node{{Life: 2, Skew: 60_000}, {Life: 3, Skew: 60_000}, {Life: 4, Skew: 60_000}}
	look()
	want("a clock beside others that have been set", 0)
	others = []engine.Node{{Life: 2}, {Life: 3}}
	look()
	truth = truth.Add(time.Hour) // all machines stood still
	want("a clock that all have set, before the next look", -time.Hour)
	look()
	want("a clock that all have set, before all have beaten", -time.Hour)
	if !c.differs.Load() {
		t.Error("the node calls by the time as it was")
	}
	pass(c.beaten)
	look()
	want("a clock that all have set", 0)
	if c.differs.Load() {
		t.Error("the node does not call by the new time")
	}
	ahead, table = time.Hour, time.Hour // the table is on the machine of the node
	look()
	want("a clock that was set with that of the table", 0)
	others = []engine.Node{{Life: 2, Skew: -3600_000}, {Life: 3, Skew: -3600_000}}
	pass(c.beaten)
	look()
	want("a clock that was set with that of the table, and not those of the others", 0)
}

// A node is alone, and its table cannot be read for 30 s. Its clock is set ahead meanwhile: the table does not agree.
func TestClockIsSetWhileTheTableIsAway(t *testing.T) {
	truth, boot, ahead := time.UnixMilli(1_000_000), time.Hour, time.Duration(0)
	c := clock{wall: func() time.Time { return truth.Add(ahead) }, boot: func() time.Duration { return boot }}
	pass := func(d time.Duration) { truth, boot = truth.Add(d), boot+d }
	look := func() { c.look(boot, truth.UnixMilli(), 1, nil) }
	look()
	pass(20 * time.Second)
	ahead = 10 * time.Second
	pass(10 * time.Second)
	for range 3 {
		look()
		if off := c.now().Sub(truth); off != 0 {
			t.Errorf("the node goes by a time that is %v off", off)
		}
		pass(200 * time.Millisecond)
	}
}

// The clock of a node is set, and the next look finds that the node has got a shard: while the node begins with that
// shard, it may not call.
func TestGainByAWrongClock(t *testing.T) {
	var ahead, gains atomic.Int64
	var m atomic.Pointer[Member]
	cfg := Config{
		Wall: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		Gain: func([]Gained) {
			gains.Add(1)
			if ahead.Load() != 0 && m.Load().Fresh() {
				t.Error("the node may call by a clock that was set")
			}
		},
	}
	beside(t, cfg, new(atomic.Int64), func(is *Member, table *memory.Members) {
		m.Store(is)
		for gains.Load() == 0 { // then the shards of the other node are free for a while
			time.Sleep(10 * ms)
		}
		seen, err := table.Look(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		before := gains.Load()
		ahead.Store(int64(5 * time.Second))
		free := slices.IndexFunc(seen.Shards[:], func(s engine.Holding) bool { return s.Holder == 0 })
		if err := table.Take(t.Context(), 1, engine.SetOf(free)); err != nil {
			t.Error(err)
		}
		if time.Sleep(300 * ms); gains.Load() == before {
			t.Error("the node has not gained the shard")
		}
	})
}

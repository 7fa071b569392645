package redis

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"xtimer/engine"
	"xtimer/tier/servertest"
	"xtimer/tier/tiertest"
)

const minute = int64(minuteMs)

// m0 is a whole hour, in the future of no test: keys must not expire early.
const m0 = int64(1_800_000_000_000) / 3_600_000 * 3_600_000

// build makes a tier that a slow machine cannot mistake for one in an outage.
func build(t testing.TB, addrs ...string) *Warm {
	t.Helper()
	w, err := New(Config{Addrs: addrs, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	w.patience = 2 * time.Minute
	return w
}

// open is build with the rest of its life.
func open(t testing.TB, addrs ...string) *Warm {
	t.Helper()
	w := build(t, addrs...)
	must(t, w.Open(t.Context()))
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// dial is a client that sees what the tier keeps.
func dial(t testing.TB, addr string) *goredis.Client {
	c := goredis.NewClient(&goredis.Options{Addr: addr, ReadTimeout: time.Minute, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func definition(id engine.TimerID, version uint32) []byte {
	t := &engine.Timer{Definition: engine.NewDefinition(), ID: id, Version: version}
	t.App, t.Schedule.Cron, t.Callback.URL = "app", "* * * * *", fmt.Sprint("https://example.com/", version)
	return engine.AppendTimer(nil, t)
}

// entry of a timer at its version 1, in a minute counted from m0.
func entry(id engine.TimerID, m int64) engine.Entry {
	return engine.Entry{ID: id, Due: m0 + m*minute + int64(id)%minute, Definition: definition(id, 1)}
}

// entries of timers 1…n in each of some minutes.
func entries(n int, minutes ...int64) (es []engine.Entry) {
	for id := 1; id <= n; id++ {
		for _, m := range minutes {
			es = append(es, entry(engine.TimerID(id), m))
		}
	}
	return es
}

// told is what Load tells of a minute counted from m0.
func told(t testing.TB, w *Warm, m int64) (map[engine.TimerID]engine.Entry, error) {
	t.Helper()
	got := map[engine.TimerID]engine.Entry{}
	err := w.Load(t.Context(), engine.AllShards, m0+m*minute, func(es []engine.Entry) error {
		for _, e := range es {
			if _, ok := got[e.ID]; ok {
				t.Fatalf("timer %d was told twice", e.ID)
			}
			got[e.ID] = e
		}
		return nil
	})
	return got, err
}

// fill does what a migrator does: it adds and seals until nothing is lost.
func fill(t testing.TB, w *Warm, es []engine.Entry, from, to int64) {
	t.Helper()
	for range 5 {
		must(t, w.Add(t.Context(), es))
		err := w.Seal(t.Context(), engine.AllShards, m0+from*minute, m0+to*minute)
		if err == nil {
			return
		}
		if !errors.Is(err, engine.ErrGap) {
			t.Fatal(err)
		}
	}
	t.Fatal("it cannot be filled")
}

// whole makes sure that a minute tells exactly these entries; definitions tells
// that all of theirs are there as well.
func whole(t testing.TB, w *Warm, m int64, want []engine.Entry, definitions bool) {
	t.Helper()
	got, err := told(t, w, m)
	must(t, err)
	n := 0
	for _, e := range want {
		if e.Due/minute != m0/minute+m {
			continue
		}
		n++
		g, ok := got[e.ID]
		if !ok || g.Due != e.Due {
			t.Fatalf("minute %d, timer %d: got %v %+v", m, e.ID, ok, g)
		}
		if string(g.Definition) != string(e.Definition) && (definitions || g.Definition != nil) {
			t.Fatalf("minute %d, timer %d: definition %q", m, e.ID, g.Definition)
		}
	}
	if len(got) != n {
		t.Fatalf("minute %d: %d entries, want %d", m, len(got), n)
	}
}

func isGap(t testing.TB, w *Warm, m int64) {
	t.Helper()
	if got, err := told(t, w, m); !errors.Is(err, engine.ErrGap) {
		t.Fatalf("minute %d: %v with %d entries, want a gap", m, err, len(got))
	}
}

func TestPromises(t *testing.T) {
	s := servertest.Redis(t)
	tiertest.Warm(t, func(t *testing.T) engine.Warm {
		s.Do("FLUSHALL")
		return build(t, s.Addr())
	})
}

// A tier that follows another on the same servers is a new one.
func TestPromisesOnACluster(t *testing.T) {
	var addrs []string
	for _, s := range servertest.RedisCluster(t) {
		addrs = append(addrs, s.Addr())
	}
	tiertest.Warm(t, func(t *testing.T) engine.Warm { return build(t, addrs...) })
}

// The address of one member is enough for a cluster.
func TestOneMember(t *testing.T) {
	w := open(t, servertest.RedisCluster(t)[1].Addr())
	es := entries(500, 0, 1)
	fill(t, w, es, 0, 2)
	whole(t, w, 0, es, true)
	whole(t, w, 1, es, true)
	w.Update(t.Context(), 7, definition(7, 2))
	must(t, w.Drop(t.Context(), m0+minute))
	must(t, w.Open(t.Context())) // again, as after an outage
	es[13].Definition = definition(7, 2)
	whole(t, w, 1, es, true)
}

// Without a fault every definition is told: the cold tier is not asked.
func TestDefinitionsAreKept(t *testing.T) {
	w := open(t, servertest.Redis(t).Addr())
	es := entries(3000, 0, 5, 59, 60)
	fill(t, w, es, 0, 61)
	for _, m := range []int64{0, 5, 59, 60} {
		whole(t, w, m, es, true)
	}
	w.Update(t.Context(), 7, definition(7, 2))
	got, err := told(t, w, 60)
	must(t, err)
	if string(got[7].Definition) != string(definition(7, 2)) {
		t.Fatal("the new definition is not told")
	}
}

// What is kept costs what it must: a definition once an hour and timer, no key
// for what is empty or dropped, an end to every key, buckets of a bounded size.
func TestKeys(t *testing.T) {
	s := servertest.Redis(t)
	w, c := open(t, s.Addr()), dial(t, s.Addr())
	var es []engine.Entry
	for id := engine.TimerID(1); len(es) < 3*5000; id++ {
		if id.Shard() == 3 {
			es = append(es, entry(id, 0), entry(id, 1), entry(id, 61))
		}
	}
	fill(t, w, es, 0, 120)
	keys := c.Keys(t.Context(), "*").Val()
	for _, k := range keys {
		if ttl := c.TTL(t.Context(), k).Val(); ttl < slack-time.Minute || ttl > time.Until(time.UnixMilli(m0+2*3_600_000))+slack+time.Minute {
			t.Errorf("%s ends in %v", k, ttl)
		}
		if !strings.HasPrefix(k, "xt:{s3}") {
			t.Errorf("%s is not of the shard", k)
		}
		switch n := c.ZCard(t.Context(), k).Val(); c.Type(t.Context(), k).Val() {
		case "zset":
			if n == 0 || n > 2.5*bucketSize {
				t.Errorf("%s holds %d entries", k, n)
			}
		}
	}
	if len(keys) != 1+2+3*5 {
		t.Errorf("%d keys: %v", len(keys), keys)
	}
	n := 0
	for _, h := range []int64{0, 1} {
		n += int(c.HLen(t.Context(), w.shards[3].hourKey(m0/minute/60+h)).Val())
	}
	if n != 2*5000 {
		t.Errorf("%d definitions", n)
	}
	// A minute that was lost goes with the others, also what was made of it and not answered.
	c.Del(t.Context(), w.shards[3].bucketKey(m0/minute+1, 0))
	isGap(t, w, 1)
	c.HSet(t.Context(), manifestKey(3), bucketField(m0/minute+1, 5), "1 1 1")
	must(t, w.Drop(t.Context(), m0+61*minute))
	keys = c.Keys(t.Context(), "*").Val()
	if fields := c.HLen(t.Context(), manifestKey(3)).Val(); len(keys) != 1+1+5 || fields != 2+5 {
		t.Errorf("after Drop: %d fields, keys %v", fields, keys)
	}
	whole(t, w, 61, es, true)
}

// A process that follows another finds its keys and tells nothing of them.
func TestAFormerProcess(t *testing.T) {
	s := servertest.Redis(t)
	former := open(t, s.Addr())
	fill(t, former, entries(2000, 0, 1), 0, 2)
	w := open(t, s.Addr())
	isGap(t, w, 0)
	es := []engine.Entry{entry(1, 0), {ID: 2, Due: m0 + 5}}
	fill(t, w, es, 0, 2)
	whole(t, w, 0, es, false)
	whole(t, w, 1, nil, false)
	if got, err := told(t, w, 0); err != nil || got[2].Definition != nil {
		t.Fatalf("%v, a definition of the former process: %+v", err, got[2])
	}
	// The former still lives, and both write on: neither tells what is not so.
	for i := range int64(5) {
		for _, x := range []*Warm{former, w} {
			e := entry(engine.TimerID(100+i), 5)
			if x == w {
				e.Due++
			}
			must(t, x.Add(t.Context(), []engine.Entry{e}))
			if got, err := told(t, x, 0); err == nil && x == w && len(got) != len(es) || err != nil && !errors.Is(err, engine.ErrGap) {
				t.Fatalf("%v, %d entries", err, len(got))
			}
		}
	}
	es = entries(300, 5)
	w = open(t, s.Addr())
	fill(t, w, es, 5, 6)
	whole(t, w, 5, es, true)
}

func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		addrs []string
		want  string
	}{
		{[]string{"h:1"}, "[h:1] 0  "},
		{[]string{"h:1", "i:2"}, "[h:1 i:2] 0  "},
		{[]string{"redis://u:p@h:1/3"}, "[h:1] 3 u p"},
		{[]string{"redis://h"}, "[h:6379] 0  "},
		{nil, "error"},
		{[]string{"http://h:1"}, "error"},
		{[]string{"redis://u:p@h:1/3", "i:2"}, "[h:1 i:2] 3 u p"},
		{[]string{"rediss://u:p@h:1", "i:2"}, "[h:1 i:2] 0 u p, TLS for any name"},
		{[]string{"redis://u:p@h:1?sentinel_username=s&sentinel_password=q", "i:2"}, "[h:1 i:2] 0 u p, Sentinels s q"},
		{[]string{"redis://h:1", "redis://i:2"}, "error"},
		{[]string{"h:1", "redis://i:2"}, "error"},
		{[]string{"redis://u:secret@h:port"}, "error"},
		{[]string{"redis://u:sec ret@h:1/secret?secret"}, "error"},
		{[]string{"redis://u:secret@h:1/x"}, "error"},
		{[]string{"redis://:secret#x@h:1"}, "error"},
		{[]string{"redis://:1/secret@h:1"}, "error"},
		{[]string{"redis://:x%secret@h:1"}, "error"},
	} {
		cfg := Config{Addrs: c.addrs}
		got := "error"
		if o, err := cfg.options(); err == nil {
			got = fmt.Sprint(o.Addrs, " ", o.DB, " ", o.Username, " ", o.Password)
			if o.TLSConfig != nil {
				got += ", TLS for " + cmp.Or(o.TLSConfig.ServerName, "any name")
			}
			if o.SentinelPassword != "" {
				got += ", Sentinels " + o.SentinelUsername + " " + o.SentinelPassword
			}
		} else if strings.Contains(err.Error(), "sec") {
			t.Errorf("the error tells the password: %v", err)
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.addrs, got, c.want)
		}
	}
}

func TestDatabases(t *testing.T) {
	s := servertest.Redis(t)
	a, b := open(t, "redis://"+s.Addr()+"/1"), open(t, "redis://"+s.Addr()+"/2")
	fill(t, a, entries(10, 0), 0, 1)
	fill(t, b, entries(20, 0), 0, 1)
	whole(t, a, 0, entries(10, 0), true)
	whole(t, b, 0, entries(20, 0), true)
}

// What is lost after its minute was found whole, and before its shard was locked, is a
// gap: no shard is read of a minute that is not whole.
func TestLossBeforeTheLock(t *testing.T) {
	w := open(t, servertest.Redis(t).Addr())
	id := engine.TimerID(1)
	for id.Shard() != engine.Shards-1 {
		id++
	}
	fill(t, w, []engine.Entry{entry(id, 0)}, 0, 1)
	sh := w.shards[engine.Shards-1]
	if es, err := w.read(t.Context(), m0/minute, []*shard{sh}); len(es) != 1 || err != nil {
		t.Fatal(es, err)
	}
	sh.mu.Lock()
	w.lose(sh) // another's write finds it out
	sh.mu.Unlock()
	if es, err := w.read(t.Context(), m0/minute, []*shard{sh}); !errors.Is(err, engine.ErrGap) {
		t.Fatalf("told as whole: %v, %v", es, err)
	}
}

package redis

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"xtimer/engine"
	"xtimer/tier/servertest"
)

// Whatever is taken from Redis is noticed, and no more than it must be is
// distrusted; filling again heals it.
func TestLosses(t *testing.T) {
	s := servertest.Redis(t)
	c := dial(t, s.Addr())
	pick := func(t *testing.T, pattern string) string {
		keys := c.Keys(t.Context(), pattern).Val()
		if len(keys) == 0 {
			t.Fatalf("no key %s", pattern)
		}
		return keys[rand.IntN(len(keys))]
	}
	minute1 := fmt.Sprintf("xt:*:%d:*", m0/minute+1)
	for _, l := range []struct {
		name string
		take func(t *testing.T) error
		gap0 bool // minute 0 is a gap
		gap1 bool // minute 1 is
	}{
		{"everything", func(t *testing.T) error { return c.FlushAll(t.Context()).Err() }, true, true},
		{"a bucket", func(t *testing.T) error { return c.Del(t.Context(), pick(t, minute1)).Err() }, false, true},
		{"a manifest", func(t *testing.T) error { return c.Del(t.Context(), manifestKey(9)).Err() }, true, true},
		{"an entry", func(t *testing.T) error {
			k := pick(t, minute1)
			return c.ZRem(t.Context(), k, c.ZRandMember(t.Context(), k, 1).Val()[0]).Err()
		}, false, true},
		{"the right due", func(t *testing.T) error {
			k := pick(t, minute1)
			return c.ZIncrBy(t.Context(), k, 1, c.ZRandMember(t.Context(), k, 1).Val()[0]).Err()
		}, false, true},
		{"a definition", func(t *testing.T) error {
			k := pick(t, "xt:*:d:*")
			return c.HDel(t.Context(), k, c.HRandField(t.Context(), k, 1).Val()...).Err()
		}, false, false},
		{"all definitions", func(t *testing.T) error { return c.Del(t.Context(), c.Keys(t.Context(), "xt:*:d:*").Val()...).Err() }, false, false},
		{"the scripts", func(t *testing.T) error { return c.ScriptFlush(t.Context()).Err() }, false, false},
	} {
		t.Run(l.name, func(t *testing.T) {
			must(t, c.FlushAll(t.Context()).Err())
			w := open(t, s.Addr())
			es := entries(2000, 0, 1)
			fill(t, w, es, 0, 3)
			must(t, l.take(t))
			for m, gap := range []bool{l.gap0, l.gap1} {
				if gap {
					isGap(t, w, int64(m))
				} else {
					whole(t, w, int64(m), es, false)
				}
			}
			fill(t, w, es, 0, 3)
			for m := range int64(3) {
				whole(t, w, m, es, false)
			}
			if w.Len() != len(es) {
				t.Fatalf("%d entries", w.Len())
			}
		})
	}
}

// What is lost of one shard is a gap in that shard alone, and to fill that again is enough.
func TestLossOfOneShard(t *testing.T) {
	s := servertest.Redis(t)
	w, c := open(t, s.Addr()), dial(t, s.Addr())
	es := entries(2000, 0, 1)
	fill(t, w, es, 0, 2)
	one := engine.SetOf(es[0].ID.Shard())
	others := engine.AllShards.Without(one)
	must(t, c.Del(t.Context(), w.shards[es[0].ID.Shard()].bucketKey(m0/minute, 0)).Err())
	isGap(t, w, 0)
	must(t, w.Load(t.Context(), others, m0, func([]engine.Entry) error { return nil }))
	if err := w.Load(t.Context(), one, m0, func([]engine.Entry) error { return nil }); !errors.Is(err, engine.ErrGap) {
		t.Errorf("what was lost: %v", err)
	}
	whole(t, w, 1, es, true)
	must(t, w.Add(t.Context(), slices.DeleteFunc(slices.Clone(es), func(x engine.Entry) bool { return !one.Has(x.ID.Shard()) })))
	must(t, w.Seal(t.Context(), one, m0, m0+minute))
	whole(t, w, 0, es, true)

	// Another process has the shard meanwhile: that is no loss to who asks for the others.
	must(t, open(t, s.Addr()).Add(t.Context(), es[:1]))
	must(t, w.Load(t.Context(), others, m0, func([]engine.Entry) error { return nil }))
	must(t, w.Load(t.Context(), others, m0+minute, func([]engine.Entry) error { return nil }))
	isGap(t, w, 0)
	isGap(t, w, 1)
}

// A loss that a write finds, not a read.
func TestLossFoundByAdd(t *testing.T) {
	s := servertest.Redis(t)
	w := open(t, s.Addr())
	es := entries(1000, 0, 1)
	fill(t, w, es, 0, 2)
	s.Do("FLUSHALL")
	must(t, w.Add(t.Context(), []engine.Entry{entry(5000, 1)}))
	isGap(t, w, 1)
	isGap(t, w, 0)
	es = append(es, entry(5000, 1))
	fill(t, w, es, 0, 2)
	whole(t, w, 0, es, true)
	whole(t, w, 1, es, true)

	// In the midst of a fill: its Seal does not declare whole what is not.
	must(t, w.Add(t.Context(), entries(500, 2)))
	s.Do("FLUSHALL")
	must(t, w.Add(t.Context(), entries(1000, 2)[500:]))
	if err := w.Seal(t.Context(), engine.AllShards, m0+2*minute, m0+3*minute); !errors.Is(err, engine.ErrGap) {
		t.Fatalf("Seal: %v", err)
	}
	isGap(t, w, 2)
	fill(t, w, entries(1000, 2), 2, 3)
	whole(t, w, 2, entries(1000, 2), true)
}

// The server comes back with an old snapshot: so does a failover to a replica
// that lagged behind. What it has is not told as if it were new.
func TestOldSnapshot(t *testing.T) {
	s := servertest.Redis(t, "--appendonly", "no")
	w := open(t, s.Addr())
	es := entries(1000, 0, 1)
	fill(t, w, es, 0, 2)
	s.Do("SAVE")
	w.Update(t.Context(), 1, definition(1, 2))
	w.Update(t.Context(), 2, nil)
	s.Kill()
	s.Start()
	for m := range int64(2) { // the buckets are the same, the definitions are not
		isGap(t, w, m)
	}
	es[0].Definition, es[1].Definition = definition(1, 2), definition(1, 2)
	es[2].Definition, es[3].Definition = nil, nil
	fill(t, w, es, 0, 2)
	whole(t, w, 0, es, true)
	whole(t, w, 1, es, true)
}

// A failover by Sentinel goes unnoticed when the replica had all: what was told
// before is told after it, and is written further, without a word from anybody.
func TestSentinel(t *testing.T) {
	t.Parallel()
	master, replica := servertest.Redis(t, "--repl-diskless-sync-delay", "0"), servertest.Redis(t)
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica.Do("REPLICAOF " + host + " " + port)
	await(t, "the replica follows", func() bool { return strings.Contains(master.Do("INFO replication"), "state=online") })
	sentinel := servertest.RedisSentinel(t, master)
	w, err := New(Config{
		Addrs: []string{sentinel.Addr()}, SentinelMaster: servertest.SentinelMaster, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	must(t, err)
	t.Cleanup(func() { _ = w.Close() })
	w.patience = 10 * time.Second
	must(t, w.Open(t.Context()))
	es := entries(500, 0)
	fill(t, w, es, 0, 1)
	await(t, "the replica has all", func() bool {
		info := master.Do("INFO replication")
		return strings.Contains(info, ",offset="+field(info, "master_repl_offset")+",")
	})
	master.Kill()
	c := dial(t, sentinel.Addr())
	await(t, "another master tells what was told before", func() bool {
		_ = c.Do(t.Context(), "SENTINEL", "FAILOVER", servertest.SentinelMaster).Err() // it may be under way, or over
		_, err := told(t, w, 0)
		return err == nil
	})
	whole(t, w, 0, es, true)
	must(t, w.Add(t.Context(), []engine.Entry{entry(9000, 0)}))
	whole(t, w, 0, append(es, entry(9000, 0)), true)
	if w.lost != 0 {
		t.Errorf("%d shards were taken for lost", w.lost)
	}
}

// A failover that loses acknowledged writes: the link to the replica is cut, and
// it is promoted.
func TestFailover(t *testing.T) {
	master := servertest.Redis(t, "--repl-diskless-sync-delay", "0")
	link := servertest.NewProxy(t, master.Addr())
	replica := servertest.Redis(t)
	host, port, _ := strings.Cut(link.Addr(), ":")
	replica.Do("REPLICAOF " + host + " " + port)
	w := open(t, master.Addr())
	es := entries(500, 0)
	fill(t, w, es, 0, 1)
	key := w.shards[entry(1, 0).ID.Shard()].bucketKey(m0/minute, 0)
	mc, rc := dial(t, master.Addr()), dial(t, replica.Addr())
	await(t, "the replica has all", func() bool {
		return rc.DBSize(t.Context()).Val() == mc.DBSize(t.Context()).Val() && rc.Exists(t.Context(), key).Val() == 1
	})
	link.Cut()
	must(t, w.Add(t.Context(), []engine.Entry{entry(9000, 0)})) // acknowledged, and lost
	master.Kill()
	replica.Do("REPLICAOF NO ONE")

	o, _ := (&Config{Addrs: []string{replica.Addr()}}).options()
	_ = w.clients.Swap(newClients(o)).close()
	isGap(t, w, 0)
	es = append(es, entry(9000, 0))
	fill(t, w, es, 0, 1)
	whole(t, w, 0, es, true)
}

// A reply is lost: the write is made once, and known to be made.
func TestLostReply(t *testing.T) {
	s := servertest.Redis(t)
	p := servertest.NewProxy(t, s.Addr())
	w := open(t, p.Addr())
	c := dial(t, s.Addr())
	es := entries(50, 0)
	fill(t, w, es, 0, 1)
	w.Update(t.Context(), 2, definition(2, 1)) // the server has the script
	for _, write := range []struct {
		name string
		make func() error
	}{
		{"add", func() error { es = append(es, entry(90, 0)); return w.Add(t.Context(), es[50:]) }},
		{"begin", func() error {
			id := engine.TimerID(1)
			for w.shards[id.Shard()].run != "" {
				id++
			}
			es = append(es, entry(id, 0))
			return w.Add(t.Context(), es[len(es)-1:])
		}},
		{"update", func() error {
			es[0].Definition = definition(1, 2)
			w.Update(t.Context(), 1, es[0].Definition)
			return nil
		}},
	} {
		writes := func() int64 {
			n := int64(0)
			for i := range engine.Shards {
				seq, _ := c.HGet(t.Context(), manifestKey(i), "seq").Int64()
				n += seq
			}
			return n
		}
		must(t, w.Add(t.Context(), es[:1])) // a connection that stands
		before := writes()
		p.SwallowReplies(true)
		var wg sync.WaitGroup
		var err error
		wg.Go(func() { err = write.make() })
		await(t, write.name+" has arrived", func() bool { return writes() > before })
		p.SwallowReplies(false)
		wg.Wait()
		if err != nil || writes() != before+1 {
			t.Fatalf("%s: %v after %d writes", write.name, err, writes()-before)
		}
		whole(t, w, 0, es, true)
	}
}

// No reply comes at all: the caller hears it, the minute is a gap, and what
// comes later is not confused by what was made after all.
func TestUnknownOutcome(t *testing.T) {
	s := servertest.Redis(t)
	p := servertest.NewProxy(t, s.Addr())
	w := open(t, p.Addr())
	es := entries(500, 0, 1)
	fill(t, w, es, 0, 2)
	w.patience = time.Second
	p.SwallowReplies(true)
	unavailable := func(err error) {
		t.Helper()
		if !errors.Is(err, engine.ErrUnavailable) {
			t.Fatalf("%v", err)
		}
	}
	unavailable(w.Add(t.Context(), []engine.Entry{entry(700, 1)}))
	w.Update(t.Context(), 700, definition(700, 2))
	p.Heal()
	w.patience = 2 * time.Minute
	await(t, "it answers", func() bool {
		_, err := told(t, w, 0)
		return err == nil && w.Add(t.Context(), []engine.Entry{entry(1, 9)}) == nil
	})
	whole(t, w, 0, es, false)
	isGap(t, w, 1)
	es = append(es, entry(700, 1))
	es[len(es)-1].Definition = definition(700, 2)
	fill(t, w, es, 0, 2)
	whole(t, w, 0, es, false)
	whole(t, w, 1, es, false)
}

// Redis is stopped, away or silent: every call ends with ErrUnavailable, Len and
// Seal work, Update keeps its promise; and it goes on afterwards.
func TestOutages(t *testing.T) {
	s := servertest.Redis(t)
	p := servertest.NewProxy(t, s.Addr())
	for _, o := range []struct {
		name       string
		begin, end func()
	}{
		{"SIGSTOP", s.Pause, s.Resume},
		{"refused", p.Cut, p.Heal},
		{"silent", p.Hang, p.Heal},
	} {
		t.Run(o.name, func(t *testing.T) {
			w := open(t, p.Addr())
			es := entries(600, 0, 1)
			fill(t, w, es, 0, 2)
			o.begin()
			w.patience = time.Second
			var wg sync.WaitGroup
			for i := range engine.TimerID(30) { // many at once do not wait in turn
				wg.Go(func() {
					if err := w.Add(t.Context(), []engine.Entry{entry(1000+i, 2)}); !errors.Is(err, engine.ErrUnavailable) {
						t.Errorf("Add: %v", err)
					}
				})
			}
			wg.Wait()
			for range 3 {
				if _, err := told(t, w, 0); !errors.Is(err, engine.ErrUnavailable) {
					t.Errorf("Load: %v", err)
				}
			}
			w.Update(t.Context(), 1, nil)
			w.Update(t.Context(), 2, definition(2, 2))
			must(t, w.Seal(t.Context(), engine.AllShards, m0+3*minute, m0+4*minute))
			if err := build(t, p.Addr()).openSoon(t); !errors.Is(err, engine.ErrUnavailable) {
				t.Errorf("Open: %v", err)
			}
			if w.Len() != len(es) {
				t.Errorf("%d entries", w.Len())
			}
			o.end()
			w.patience = 2 * time.Minute
			await(t, "it answers", func() bool {
				_, err := told(t, w, 0)
				return err == nil && w.Add(t.Context(), []engine.Entry{entry(1, 9)}) == nil
			})
			got, err := told(t, w, 1)
			must(t, err)
			if len(got) != 600 || got[1].Definition != nil || got[2].Definition != nil {
				t.Errorf("a former definition was told: %+v %+v", got[1], got[2])
			}
			isGap(t, w, 2)
			fill(t, w, entries(1030, 2)[600:], 2, 3)
			whole(t, w, 2, entries(1030, 2)[600:], true)
			must(t, w.Drop(t.Context(), m0+10*minute))
		})
	}
}

// With every connection of the pool at work a call waits for half a second, not for
// its patience, and fails; what is under way is made, and all goes on afterwards.
func TestFullPool(t *testing.T) {
	s := servertest.Redis(t)
	w, c := open(t, s.Addr()), dial(t, s.Addr())
	o := w.clients.Load().writes.(*goredis.Client).Options()
	o.ReadTimeout = time.Minute             // those that have a place wait for their answer
	size := o.PipelinePoolSize + o.PoolSize // what finds no place in the one goes to the other
	es := make(map[int]engine.Entry)        // one a shard: a shard's writes take turns
	for id := engine.TimerID(1); len(es) < size+4; id++ {
		es[id.Shard()] = entry(id, 0)
	}
	var each []engine.Entry
	for _, e := range es {
		each = append(each, e)
	}
	add := func(es []engine.Entry) chan error {
		done := make(chan error, len(es))
		for _, e := range es {
			go func() { done <- w.Add(t.Context(), []engine.Entry{e}) }()
		}
		return done
	}
	must(t, c.Do(t.Context(), "CLIENT", "PAUSE", 600_000, "WRITE").Err())
	first := add(each[:size])
	await(t, "the pool is full", func() bool {
		return strings.Count(c.ClientList(t.Context()).Val(), "cmd=evalsha") == size
	})
	more := add(each[size:])
	for range each[size:] {
		if err := <-more; !errors.Is(err, engine.ErrUnavailable) {
			t.Errorf("without a place in the pool: %v", err)
		}
	}
	if len(first) > 0 {
		t.Errorf("the first to end was one that had a place: %v", <-first)
	}
	must(t, c.Do(t.Context(), "CLIENT", "UNPAUSE").Err())
	for range size {
		must(t, <-first)
	}
	await(t, "it goes on", func() bool { return w.Add(t.Context(), each[size:]) == nil })
	fill(t, w, each, 0, 1)
	whole(t, w, 0, each, true)
}

func (w *Warm) openSoon(t *testing.T) error {
	defer w.Close()
	w.patience = time.Second
	return w.Open(t.Context())
}

// A full Redis that evicts: what is told is whole, the rest is a gap. One that
// does not evict refuses, and the caller hears it.
func TestFullRedis(t *testing.T) {
	for _, policy := range []string{"allkeys-random", "noeviction"} {
		t.Run(policy, func(t *testing.T) {
			s := servertest.Redis(t, "--maxmemory", "3mb", "--maxmemory-policy", policy, "--appendonly", "no")
			var log bytes.Buffer
			w, err := New(Config{Addrs: []string{s.Addr()}, Log: slog.New(slog.NewTextHandler(&log, nil))})
			must(t, err)
			w.patience = 2 * time.Minute
			must(t, w.Open(t.Context()))
			t.Cleanup(func() { _ = w.Close() })
			if warned := strings.Contains(log.String(), "noeviction"); warned != (policy != "noeviction") {
				t.Errorf("it says: %s", log.String())
			}
			var all []engine.Entry
			refused := false
			for m := range int64(20) {
				var es []engine.Entry
				for id := range engine.TimerID(600) {
					es = append(es, entry(1+600*engine.TimerID(m)+id, m))
				}
				all = append(all, es...)
				if err := w.Add(t.Context(), es); err != nil {
					refused = true
					if !errors.Is(err, engine.ErrUnavailable) {
						t.Fatal(err)
					}
					continue
				}
				_ = w.Seal(t.Context(), engine.AllShards, m0+m*minute, m0+(m+1)*minute)
			}
			gaps := 0
			for m := range int64(20) {
				if _, err := told(t, w, m); errors.Is(err, engine.ErrGap) {
					gaps++
				} else {
					whole(t, w, m, all, false)
				}
			}
			if gaps == 0 || refused != (policy == "noeviction") {
				t.Fatalf("%d gaps, refused: %v", gaps, refused)
			}
		})
	}
}

// Redis may be flushed at any time while several write and one fills.
func TestFlushesMeanwhile(t *testing.T) {
	s := servertest.Redis(t)
	w, c := open(t, s.Addr()), dial(t, s.Addr())
	var mu sync.Mutex
	var truth []engine.Entry // what was created, before it is added
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			for i := range 150 {
				e := entry(engine.TimerID(1+g*150+i), int64(i)%3)
				mu.Lock()
				truth = append(truth, e)
				mu.Unlock()
				if err := w.Add(t.Context(), []engine.Entry{e}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	stop := make(chan struct{})
	var flusher sync.WaitGroup
	flusher.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				if err := c.FlushAll(t.Context()).Err(); err != nil {
					t.Error(err)
				}
			}
		}
	})
	refill := func() bool {
		mu.Lock()
		es := append([]engine.Entry(nil), truth...)
		mu.Unlock()
		must(t, w.Add(t.Context(), es))
		if err := w.Seal(t.Context(), engine.AllShards, m0, m0+3*minute); err != nil {
			return false
		}
		for m := range int64(3) {
			got, err := told(t, w, m)
			if err != nil {
				continue
			}
			for _, e := range es {
				if e.Due/minute == m0/minute+m && got[e.ID].Due != e.Due {
					t.Fatalf("minute %d is told as whole without timer %d", m, e.ID)
				}
			}
		}
		return true
	}
	for range 20 {
		refill()
	}
	wg.Wait()
	close(stop)
	flusher.Wait()
	await(t, "it is whole", func() bool { return refill() && w.Len() == len(truth) })
	for m := range int64(3) {
		whole(t, w, m, truth, false)
	}
}

func await(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute it is still not so that %s", what)
		}
	}
}

// A key of another type in the place of what was put there is a loss: the shard is taken over, and
// filled again.
func TestKeysOfAnotherType(t *testing.T) {
	for name, key := range map[string]func(sh *shard) string{
		"manifest":    func(sh *shard) string { return manifestKey(sh.n) },
		"bucket":      func(sh *shard) string { return sh.bucketKey(m0/minuteMs, 0) },
		"definitions": func(sh *shard) string { return sh.hourKey(m0 / minuteMs / hourMin) },
	} {
		t.Run(name, func(t *testing.T) {
			s := servertest.Redis(t)
			w, c := open(t, s.Addr()), dial(t, s.Addr())
			es := entries(500, 0)
			fill(t, w, es, 0, 1)
			must(t, c.Set(t.Context(), key(w.shards[es[0].ID.Shard()]), "x", 0).Err())
			if _, err := told(t, w, 0); err == nil {
				t.Error("what is not there is told")
			}
			var err error
			for range 3 { // an Add finds the loss, and a Seal tells of it
				if err = w.Add(t.Context(), es); err == nil {
					err = w.Seal(t.Context(), engine.AllShards, m0, m0+minute)
				}
				if err == nil {
					break
				}
			}
			must(t, err)
			whole(t, w, 0, es, true)
		})
	}
}

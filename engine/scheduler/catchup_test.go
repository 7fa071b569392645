package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/scheduler"
	"xtimer/tier/local"
	"xtimer/tier/memory"
	"xtimer/wal"
)

// work counts what a world's cold tier is asked for.
type work struct {
	mu sync.Mutex
	tally
}

type tally struct {
	calls   map[string]int
	rows    int // put into owed
	records int
	start   int // rows and records that a start stored
}

func (k *work) count(op string, arg any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls[op]++
	if s, is := arg.(*engine.Settlement); is {
		k.rows += len(s.Owe)
		k.records += len(s.Tasks)
		if s.Replayed {
			k.start += len(s.Owe) + len(s.Tasks)
		}
	}
}

// reset begins to count anew.
func (k *work) reset() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tally = tally{calls: map[string]int{}}
}

// sum is what was counted so far.
func (k *work) sum() tally {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.tally
	n.calls = maps.Clone(n.calls)
	return n
}

func (w *world) counted() *work {
	k := &work{}
	k.reset()
	w.before.set(func(op string, arg any) error {
		k.count(op, arg)
		return nil
	})
	return k
}

// zoned makes timers that are due each minute of a time zone, one for each second.
func (w *world) zoned(p engine.MisfirePolicy, window time.Duration) (ids []engine.TimerID) {
	for i := range 60 {
		s := cron(fmt.Sprintf("%d * * * * *", i))
		s.TimeZone = "Europe/Berlin"
		ids = append(ids, w.make(timer(fmt.Sprint(i), s, misfire(p, window))))
	}
	return ids
}

// What a start costs goes with what is called or recorded. A year of each due would
// take until the end of the test's time.
func TestStartAfterAYear(t *testing.T) {
	for _, policy := range []engine.MisfirePolicy{engine.MisfireLatest, engine.MisfireSkip, engine.MisfireAll} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				k := w.counted()
				w.config.HistoryRetention = 1000 * 24 * time.Hour
				w.start()
				w.zoned(policy, time.Hour)
				ids := []engine.TimerID{}
				for i := range 3 {
					ids = append(ids, w.make(timer(fmt.Sprint("fast", i), every(100*time.Millisecond), misfire(policy, time.Minute))))
				}
				time.Sleep(2 * time.Second)
				w.crashes = append(w.crashes, w.now())
				w.kill()
				time.Sleep(365 * 24 * time.Hour)
				k.reset()
				w.start()
				if n := k.sum().start; n > 4*63+100 { // some calls were not settled before
					t.Errorf("a start stored %d rows and records of 63 timers", n)
				}
				for _, id := range ids {
					w.disable(id, 0) // what is to be called of it is cancelled
				}
				w.settle()
				from := w.starts[1]/60_000*60_000 + 60_000
				time.Sleep(90 * time.Second)
				w.wantOnTime(from, w.now()-1000)
			})
		})
	}
}

// A start after an outage of seconds stores a few rows and records of each timer, not one of
// each due that is called, and calls all of them; a neighbour is on time from the first
// second on.
func TestStartAfterSeconds(t *testing.T) {
	for _, policy := range []engine.MisfirePolicy{engine.MisfireLatest, engine.MisfireSkip, engine.MisfireAll} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				k := w.counted()
				w.start()
				from := w.now()
				ids := make([]engine.TimerID, 100)
				for i := range ids {
					ids[i] = w.make(timer(fmt.Sprint(i), every(time.Second), misfire(policy, time.Hour)))
				}
				w.make(timer("neighbour", every(100*time.Millisecond), elsewhere("neighbour", "http://127.0.0.1:2/")))
				time.Sleep(2300 * time.Millisecond)
				k.reset()
				w.crash(30 * time.Second)
				if n := k.sum().start; n > 4*len(ids) { // with a due for each second: more than 10
					t.Errorf("the start stored %d rows and records of %d timers", n, len(ids))
				}
				ready := w.now()
				time.Sleep(5 * time.Second)
				seen := map[int64]bool{}
				for _, c := range w.of("neighbour") {
					seen[c.key.Due] = seen[c.key.Due] || c.at-c.key.Due <= 20
				}
				for _, due := range grid(ready+1000, w.now()-100, 100, from) {
					if !seen[due] {
						t.Errorf("the due %s of the neighbour was not called on time", stamp(due))
					}
				}
				w.settle()
				called := 0
				for i, id := range ids {
					w.accounted(id, from, ready+3000, 1000)
					for _, c := range w.of(fmt.Sprint(i)) {
						if c.at >= ready && c.key.Due <= ready {
							called++
						}
					}
				}
				want := map[engine.MisfirePolicy]int{engine.MisfireLatest: 11, engine.MisfireSkip: 10, engine.MisfireAll: 30}[policy]
				if called < want*len(ids) {
					t.Errorf("%d missed dues were called, want %d of each timer", called, want)
				}
			})
		})
	}
}

// A start that holds few decisions goes through the plans several times, and stores those
// of a shard with its watermark: one that is cut short between two transactions, and
// made again by a later clock, decides nothing twice. The ledger of the world tells.
func TestStartIsCutShort(t *testing.T) {
	defer scheduler.BoundHeld(50)()
	for _, policy := range []engine.MisfirePolicy{engine.MisfireLatest, engine.MisfireSkip, engine.MisfireAll} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				k := w.counted()
				count := w.before.get()
				commits := 0 // that move watermarks, since the crash
				w.before.set(func(op string, arg any) error {
					if s, is := arg.(*engine.Settlement); is && s.Replayed && len(s.Marks) > 0 {
						if commits++; commits == 4 {
							time.Sleep(2 * time.Minute)
							return fmt.Errorf("away: %w", engine.ErrUnavailable)
						}
					}
					return count(op, arg)
				})
				w.start()
				from := w.now()
				ids := make([]engine.TimerID, 150)
				for i := range ids {
					ids[i] = w.make(timer(fmt.Sprint(i), every(10*time.Second), misfire(policy, 4*time.Minute)))
				}
				time.Sleep(15 * time.Second)
				k.reset()
				commits = 0
				w.crash(12 * time.Minute)
				if n := k.sum().calls["Due"]; n < 4 || commits < 8 {
					t.Errorf("%d passes and %d commits", n, commits)
				}
				time.Sleep(time.Minute)
				w.settle()
				for _, id := range ids {
					w.accounted(id, from, w.now()-10_000, 10_000)
				}
			})
		})
	}
}

// A start that is cut short at any of its commits, and made again by a later clock, decides
// nothing twice: neither rows that are later than the watermark nor ranges without end. The
// timers are behind, as their target is slow.
func TestStartOfTimersThatAreBehindIsCutShort(t *testing.T) {
	defer scheduler.BoundDecided(10)()
	defer scheduler.BoundHeld(40)()
	for _, policy := range []engine.MisfirePolicy{engine.MisfireLatest, engine.MisfireSkip, engine.MisfireAll} {
		for _, once := range []bool{false, true} {
			for _, o := range []engine.Overlap{engine.OverlapAllow, engine.OverlapQueue} {
				t.Run(fmt.Sprint(policy, " ", o, " ", once), func(t *testing.T) {
					for cut := 1; ; cut += 1 + cut/4 {
						n := 0
						bubble(t, func(t *testing.T, w *world) {
							w.before.set(func(op string, arg any) error {
								if s, is := arg.(*engine.Settlement); is && s.Replayed {
									if n++; n == cut {
										time.Sleep(40 * time.Second)
										return fmt.Errorf("away: %w", engine.ErrUnavailable)
									}
								}
								return nil
							})
							opts := []func(*engine.Definition){misfire(policy, 30*time.Second), overlap(o)}
							if once {
								opts = append(opts, atMostOnce)
							}
							ids, answer := w.crowdedBy(10, opts...)
							from := w.now()
							time.Sleep(20 * time.Second)
							n = 0
							w.crash(25 * time.Second)
							answer()
							time.Sleep(time.Minute)
							for _, id := range ids {
								w.stopAccounted(id, from, 500)
							}
						})
						if n < cut {
							break // the start had fewer commits
						}
					}
				})
			}
		}
	}
}

// wantOnTime fails unless each of the timers that zoned made was called for its dues in
// (from, to] within a second of them.
func (w *world) wantOnTime(from, to int64) {
	w.t.Helper()
	for i := range 60 {
		seen := map[int64]bool{}
		for _, c := range w.of(fmt.Sprint(i)) {
			seen[c.key.Due] = seen[c.key.Due] || c.at-c.key.Due <= 1000
		}
		for _, due := range grid(from, to, 60_000, int64(i)*1000) {
			if !seen[due] {
				w.t.Errorf("second %d: the due %s was not called on time", i, stamp(due))
			}
		}
	}
}

// After a step of the clock by days the cold tier is gone through once, not minute by
// minute, and each timer is decided once; five seconds later all is on time.
func TestStepForwardIsOnePass(t *testing.T) {
	for _, policy := range []engine.MisfirePolicy{engine.MisfireLatest, engine.MisfireSkip} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				k := w.counted()
				w.start()
				ids := w.zoned(policy, 24*time.Hour)
				hourly := w.make(timer("hourly", cron("30 7 * * * *"), misfire(policy, 24*time.Hour))) // not in memory
				time.Sleep(90 * time.Second)
				w.settle()
				was := w.now()
				w.step(72 * time.Hour)
				k.reset()
				time.Sleep(5 * time.Second)
				stepped := w.now()
				time.Sleep(2 * time.Minute)
				n := k.sum()
				if reads := n.calls["Due"] + n.calls["Owed"] + n.calls["Load"]; reads > 200 {
					t.Errorf("the cold tier was read %d times: %v", reads, n.calls)
				}
				if n.rows > 4*len(ids) || n.records > 8*len(ids) {
					t.Errorf("%d rows and %d records were stored of %d timers", n.rows, n.records, len(ids))
				}
				w.wantOnTime(stepped, w.now()-1000)
				w.settle()
				for _, id := range append(ids, hourly) {
					skipped := int64(0)
					for _, r := range w.records(id) {
						if r.Key.Due >= was && r.Count > 1 {
							skipped += r.Count
						}
					}
					if want := int64(72*60 - 2); id != hourly && skipped < want-1 || id == hourly && skipped < 70 {
						t.Errorf("timer %s: %d dues are recorded as not called", id, skipped)
					}
				}
			})
		})
	}
}

// What was due while the tiers were away is called, late, and is not gone
// through due by due: it is read in one pass, and owed as ranges.
func TestOutageIsOnePass(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		k := w.counted()
		away := w.outage("Due", "Load", "Owed")
		refuse := w.before.get()
		w.before.set(func(op string, arg any) error {
			k.count(op, arg)
			return refuse(op, arg)
		})
		w.config.Window = 2 * time.Minute // else the warm tier knows the minutes
		w.start()
		from := w.now()
		ids := w.zoned(engine.MisfireSkip, 24*time.Hour)
		time.Sleep(10 * time.Second)
		away.Store(true)
		time.Sleep(15 * time.Minute) // more than it may be gone through
		away.Store(false)
		k.reset()
		time.Sleep(5 * time.Second)
		back := w.now()
		if n := k.sum().calls["Due"]; n > 12 {
			t.Errorf("the cold tier was gone through %d times", n)
		}
		time.Sleep(2 * time.Minute)
		w.wantOnTime(back, w.now()-1000)
		w.settle()
		for i, id := range ids {
			for _, r := range w.records(id) {
				if r.Status != engine.Succeeded {
					t.Errorf("second %d: the due %s is %s", i, stamp(r.Key.Due), r.Status)
				}
			}
		}
		w.wantMinutely(from, back)
	})
}

// Ranges are unfolded in turns: no timer waits until all that another has missed was
// called.
func TestRangesTakeTurns(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		const timers = 8
		for i := range timers {
			w.behave(fmt.Sprint(i), func(*call) reply { return slow(time.Second) })
			w.make(timer(fmt.Sprint(i), every(200*time.Millisecond), misfire(engine.MisfireAll, time.Hour)))
		}
		time.Sleep(time.Second)
		w.crash(5 * time.Minute) // 1,500 dues of each: a range
		time.Sleep(10 * time.Second)
		least, most := 1<<30, 0
		for i := range timers {
			n := 0
			for _, c := range w.of(fmt.Sprint(i)) {
				if c.at >= w.starts[1] {
					n++
				}
			}
			least, most = min(least, n), max(most, n)
		}
		if least*2 < most {
			t.Errorf("one timer was called %d times, another %d times", least, most)
		}
		for i := range timers {
			v, err := w.TimerByName(t.Context(), "app", fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			w.disable(v.ID, 0)
		}
		w.settle()
	})
}

// A timer that is being changed does not keep the others from being unfolded.
func TestUnfoldBesideAChange(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var slowly engine.TimerID
		w.before.set(func(op string, arg any) error {
			if c, is := arg.(*engine.Change); is && c.ID == slowly {
				time.Sleep(30 * time.Second)
			}
			return nil
		})
		w.start()
		a := w.make(timer("a", every(time.Second), misfire(engine.MisfireAll, time.Hour)))
		w.make(timer("b", every(time.Second), misfire(engine.MisfireAll, time.Hour)))
		time.Sleep(3 * time.Second)
		was := len(w.of("b"))
		slowly = a
		w.behave("c", func(*call) reply { return ok })
		w.crashes = append(w.crashes, w.now())
		w.kill()
		time.Sleep(10 * time.Minute)
		w.tune = func(e *scheduler.Scheduler) {
			w.all.Go(func() {
				untilReady(e)
				_, _ = e.Disable(context.Background(), a, 0, "", 0)
			})
		}
		w.start()
		time.Sleep(10 * time.Second)
		if n := len(w.of("b")) - was; n < 600 {
			t.Errorf("%d of the 600 missed dues were called", n)
		}
		time.Sleep(time.Minute)
		w.settle()
	})
}

// BenchmarkStart opens a store on a disk after a downtime, and again when nothing was called since.
// B/timer is what it has in memory then.
func BenchmarkStart(b *testing.B) {
	minutely := engine.Schedule{Cron: "* * * * *", TimeZone: "America/New_York"}
	for _, x := range []struct {
		name   string
		timers int
		s      engine.Schedule
		policy engine.MisfirePolicy
		down   time.Duration
	}{
		{"20000,minute,zone,72h,latest", 20_000, minutely, engine.MisfireLatest, 72 * time.Hour},
		{"20000,minute,zone,year,latest", 20_000, minutely, engine.MisfireLatest, 365 * 24 * time.Hour},
		{"100,10ms,24h,latest", 100, every(10 * time.Millisecond), engine.MisfireLatest, 24 * time.Hour},
		{"5000,second,10m,all", 5000, every(time.Second), engine.MisfireAll, 10 * time.Minute},
		{"5000,second,10m,latest", 5000, every(time.Second), engine.MisfireLatest, 10 * time.Minute},
		{"100000,at,1m,latest", 100_000, engine.Schedule{At: time.Now().Add(-30 * time.Second).UnixMilli()}, engine.MisfireLatest, time.Minute},
		{"5000,second,10m,skip", 5000, every(time.Second), engine.MisfireSkip, 10 * time.Minute},
		{"100000,second,30s,all", 100_000, every(time.Second), engine.MisfireAll, 30 * time.Second},
		{"100000,second,30s,latest", 100_000, every(time.Second), engine.MisfireLatest, 30 * time.Second},
		{"100000,second,30s,skip", 100_000, every(time.Second), engine.MisfireSkip, 30 * time.Second},
	} {
		b.Run(x.name, func(b *testing.B) {
			took, again, kept := time.Duration(0), time.Duration(0), 0
			for b.Loop() {
				b.StopTimer()
				d := timer("", x.s, misfire(x.policy, 24*time.Hour))
				cfg := scheduler.Config{Log: slog.New(slog.DiscardHandler), Warm: memory.NewWarm(), Cold: missedStore(b, d, x.timers, x.down)}
				cfg.Journal = wal.New(wal.Config{Dir: b.TempDir()})
				former := heap()
				b.StartTimer()
				started := time.Now()
				e := scheduler.New(cfg)
				if err := e.Open(b.Context()); err != nil {
					b.Fatal(err)
				}
				took += time.Since(started)
				b.StopTimer()
				kept += heap() - former
				ended, cancel := context.WithCancel(b.Context())
				cancel()
				if err := e.Run(ended); err != nil { // closes the tiers
					b.Log(err)
				}
				cfg.Metrics = nil
				started = time.Now()
				if e = scheduler.New(cfg); e.Open(b.Context()) != nil {
					b.Fatal("the second start failed")
				}
				again += time.Since(started)
				if err := e.Run(ended); err != nil {
					b.Log(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "start-ms")
			b.ReportMetric(float64(again.Milliseconds())/float64(b.N), "again-ms")
			b.ReportMetric(float64(kept)/float64(b.N*x.timers), "B/timer")
		})
	}
}

// BenchmarkAfterStart has 100,000 timers of each second that end while nobody serves them, for
// 30 s: how long the start takes and then the calls of the last 10 s, and how late the calls of
// a neighbour are meanwhile.
func BenchmarkAfterStart(b *testing.B) {
	const timers, neighbours = 100_000, 100
	for b.Loop() {
		d := timer("", every(time.Second), misfire(engine.MisfireSkip, time.Hour))
		d.Schedule.EndAt = time.Now().Add(10 * time.Second).UnixMilli() // the store is made before
		cold := missedStore(b, d, timers, 20*time.Second)
		time.Sleep(time.Until(time.UnixMilli(d.Schedule.EndAt)))
		var late []time.Duration
		var mu sync.Mutex
		var calls atomic.Int64
		cfg := scheduler.Config{Log: slog.New(slog.DiscardHandler), Warm: memory.NewWarm(), Cold: cold, Journal: wal.New(wal.Config{Dir: b.TempDir()})}
		cfg.Caller = callee(func(c *engine.Call) engine.Outcome {
			now := time.Now()
			if c.Timer.App != "neighbour" {
				calls.Add(1)
			} else {
				mu.Lock()
				late = append(late, now.Sub(time.UnixMilli(c.Key.Due)))
				mu.Unlock()
			}
			return engine.Outcome{Class: engine.ClassOK, Code: 200, Sent: now}
		})
		started := time.Now()
		e := scheduler.New(cfg)
		if err := e.Open(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(time.Since(started).Milliseconds()), "start-ms")
		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		untilReady(e)
		ready := time.Now()
		for i := range neighbours {
			n := timer(fmt.Sprint("n", i), every(100*time.Millisecond), elsewhere("neighbour", "http://127.0.0.1:2/"))
			if c := e.Create(b.Context(), n, nil); c.Err != nil {
				b.Fatal(c.Err)
			}
		}
		for was := int64(-1); calls.Load() != was; time.Sleep(time.Second) {
			if was = calls.Load(); was < 10*timers {
				b.Logf("%v: %d calls", time.Since(ready).Round(time.Millisecond), was)
			}
		}
		b.ReportMetric(time.Since(ready).Seconds()-1, "drain-s")
		b.ReportMetric(float64(calls.Load()), "calls")
		mu.Lock()
		slices.Sort(late)
		b.ReportMetric(float64(late[len(late)/2].Microseconds())/1e3, "neighbour-p50-ms")
		b.ReportMetric(float64(late[len(late)*99/100].Microseconds())/1e3, "neighbour-p99-ms")
		b.ReportMetric(float64(late[len(late)-1].Microseconds())/1e3, "neighbour-max-ms")
		mu.Unlock()
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}
}

// heap is how many bytes are alive.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// BenchmarkStep is how long after a step of 72 hours forward the last call is made that
// is late by more than a second.
func BenchmarkStep(b *testing.B) {
	const timers = 20_000
	for b.Loop() {
		var offset, latest atomic.Int64
		var calls atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
		d := timer("", engine.Schedule{Cron: "* * * * *", TimeZone: "America/New_York", Jitter: time.Minute}, misfire(engine.MisfireLatest, 24*time.Hour))
		cfg := scheduler.Config{Log: slog.New(slog.DiscardHandler), Warm: memory.NewWarm(), Now: now}
		cfg.Cold, cfg.Journal = missedStore(b, d, timers, time.Minute), wal.New(wal.Config{Dir: b.TempDir()})
		cfg.Caller = callee(func(c *engine.Call) engine.Outcome {
			calls.Add(1)
			if sent := now(); sent.UnixMilli()-c.Key.Due > 1000 {
				latest.Store(time.Now().UnixNano())
			}
			return engine.Outcome{Class: engine.ClassOK, Code: 200, Sent: now()}
		})
		e := scheduler.New(cfg)
		if err := e.Open(b.Context()); err != nil {
			b.Fatal(err)
		}
		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx) }()
		time.Sleep(5 * time.Second)
		stepped := time.Now()
		before := calls.Load()
		offset.Store(int64(72 * time.Hour))
		time.Sleep(20 * time.Second)
		b.ReportMetric(time.Unix(0, latest.Load()).Sub(stepped).Seconds(), "s-until-on-time")
		b.ReportMetric(float64(calls.Load()-before), "calls-in-20s")
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}
}

type callee func(c *engine.Call) engine.Outcome

func (f callee) Call(c *engine.Call) engine.Outcome { return f(c) }

// missedStore is a store, closed, whose timers nobody has served for a while.
func missedStore(b *testing.B, d engine.Definition, timers int, down time.Duration) engine.Cold {
	b.Helper()
	ctx := b.Context()
	cold := local.New(local.Config{Dir: b.TempDir()})
	if err := cold.Open(ctx); err != nil {
		b.Fatal(err)
	}
	from := time.Now().Add(-down).UnixMilli()
	for i := 0; i < timers; i += 1000 {
		var cs []*engine.Change
		for id := engine.TimerID(i + 1); len(cs) < min(1000, timers); id++ {
			t := &engine.Timer{Definition: d, ID: id << 21, Version: 1, Generation: 1, CreatedAt: from, UpdatedAt: from}
			t.Name = id.String()
			if err := plan.Resolve(t, nil, from); err != nil {
				b.Fatal(err)
			}
			cs = append(cs, &engine.Change{Timer: t, ID: t.ID, At: from})
		}
		for _, a := range cold.ApplyAll(ctx, cs) {
			if a.Err != nil {
				b.Fatal(a.Err)
			}
		}
	}
	var s engine.Settlement
	for i := range engine.Shards {
		s.Marks = append(s.Marks, engine.Mark{Shard: i, W: from})
	}
	if err := cold.Settle(ctx, &s); err != nil {
		b.Fatal(err)
	}
	if err := cold.Close(); err != nil {
		b.Fatal(err)
	}
	return cold
}

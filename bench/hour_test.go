package bench

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/inspect"
	"xtimer/engine/scheduler"
	"xtimer/engine/verify"
	"xtimer/tier/mysql"
	"xtimer/tier/redis"
	"xtimer/tier/servertest"
	"xtimer/wal"
)

// TestHour lives through an hour change, and with it a day's, on a real MariaDB
// and a real Redis: each due of each line is called once, none early, Redis tells
// the minute after next as brute force has it, and the ledger proves itself.
//
// Midnight comes 20 s after the start. XTIMER_HOUR=90s makes it longer: only
// then are minutes fired that came out of Redis.
func TestHour(t *testing.T) {
	beside(t)
	const lead, window, alike = 20 * time.Second, 2 * time.Minute, 16
	lasts := 25 * time.Second
	if s := os.Getenv("XTIMER_HOUR"); s != "" {
		var err error
		if lasts, err = time.ParseDuration(s); err != nil {
			t.Fatalf("XTIMER_HOUR: %v", err)
		}
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	dsn := servertest.MariaDB(t).DSN("xtimer")
	warm, err := redis.New(redis.Config{Addrs: []string{servertest.Redis(t).Addr()}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	// The tables are made before the clock is set: that may take a while.
	openCold(t, dsn, func(*mysql.Store) {})

	midnight := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	shift := time.Until(midnight) - lead
	h := &hour{calls: map[engine.Key][]int64{}, now: func() time.Time { return time.Now().Add(shift) }}
	next := &bucket{Warm: warm, minute: midnight.Add(time.Minute).UnixMilli(), told: map[engine.TimerID]int64{}}
	e := scheduler.New(scheduler.Config{
		Cold: mysql.New(mysql.Config{DSN: dsn}), Warm: next, Journal: wal.New(wal.Config{Dir: t.TempDir(), Logger: log}),
		Caller: h, Window: window, Now: h.now, Log: log,
	})
	if err := e.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	stop := sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = stop() })
	await(t, "it is ready", func() bool { return e.Ready() == nil })

	type made struct {
		line line
		view inspect.View
	}
	var all []made
	var ds []engine.Definition
	for _, l := range lines(midnight) {
		for i := range alike {
			d := engine.NewDefinition()
			d.App, d.Name, d.Schedule = "hour", fmt.Sprintf("%s-%d", l.name, i), l.schedule
			d.Callback.URL = "http://127.0.0.1:1/" + l.name
			d.Misfire.Policy = engine.MisfireAll // the machine may stand still for a while
			ds, all = append(ds, d), append(all, made{line: l})
		}
	}
	for i, c := range e.CreateAll(t.Context(), ds) {
		if c.Err != nil {
			t.Fatalf("%s: %v", ds[i].Name, c.Err)
		}
		all[i].view = c.View
	}
	t.Logf("%d timers, made %v before midnight", len(all), midnight.Sub(h.now()).Round(time.Millisecond))

	to := midnight.Add(lasts - lead).UnixMilli()
	want := map[engine.Key]bool{}
	inBucket := map[engine.TimerID]int64{}
	for _, m := range all {
		for _, due := range m.line.dues(m.view.Timer, to) {
			want[engine.Key{Timer: m.view.ID, Due: due}] = true
		}
		for _, due := range m.line.dues(m.view.Timer, next.minute+59_999) {
			if due >= next.minute && inBucket[m.view.ID] == 0 {
				inBucket[m.view.ID] = due
			}
		}
	}
	time.Sleep(time.UnixMilli(to).Sub(h.now()))
	await(t, "all that was due was called", func() bool { return h.has(want) })
	if err := stop(); err != nil {
		t.Fatalf("it ended with %v", err)
	}

	// What came while it ended is a due of its line as well.
	last := to
	for k := range h.calls {
		last = max(last, k.Due)
	}
	for _, m := range all {
		for _, due := range m.line.dues(m.view.Timer, last) {
			want[engine.Key{Timer: m.view.ID, Due: due}] = true
		}
	}
	for k, at := range h.calls {
		switch {
		case !want[k]:
			t.Errorf("%s was called and is no due of its line", k)
		case len(at) != 1:
			t.Errorf("%s was called %d times", k, len(at))
		case at[0] < k.Due:
			t.Errorf("%s was called %d ms early", k, k.Due-at[0])
		}
	}
	switch {
	case next.loads == 0 && os.Getenv("XTIMER_HOUR") != "":
		t.Error("Redis told no minute that was fired: the trial says nothing of it")
	case next.loads == 0:
		t.Log("Redis was not asked for the minute after next, or had lost it: MariaDB told it")
	case !maps.Equal(next.told, inBucket):
		t.Errorf("Redis told %d timers of the minute after next, want %d:\n got %v\nwant %v", len(next.told), len(inBucket), next.told, inBucket)
	}
	openCold(t, dsn, func(cold *mysql.Store) {
		v := verify.Request{From: midnight.Add(-time.Hour).UnixMilli(), To: engine.MaxDue}
		verdict, err := verify.Offline(t.Context(), cold, v, h.now().UnixMilli(), 7*24*time.Hour, func(f *verify.Finding) error {
			t.Errorf("the ledger: %s of %s, due %d: %s", f.Kind, f.Name, f.Due, f.Detail)
			return nil
		})
		if err != nil || verdict.Records != int64(len(h.calls)) {
			t.Errorf("the ledger has %d records of %d calls; %v", verdict.Records, len(h.calls), err)
		}
	})
	t.Logf("%d dues called once; %d timers of the minute after next told by Redis", len(h.calls), len(next.told))
}

// openCold opens the cold tier for a while.
func openCold(t *testing.T, dsn string, do func(*mysql.Store)) {
	t.Helper()
	cold := mysql.New(mysql.Config{DSN: dsn})
	if err := cold.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	do(cold)
	if err := cold.Close(); err != nil {
		t.Error(err)
	}
}

// await waits for something with more patience than any machine needs.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so after a minute: %s", what)
		}
	}
}

// line is a schedule, and what it means: whether something is due at an instant
// (Unix ms), for a timer that was made at another.
type line struct {
	name     string
	schedule engine.Schedule
	isDue    func(at, made int64) bool
}

// lines have dues at the border of an hour, around it and across it. What they
// mean is said without the engine's help.
func lines(midnight time.Time) []line {
	cron := func(name, spec, zone string, is func(h, m, s int) bool) line {
		return line{name, engine.Schedule{Cron: spec, TimeZone: zone}, func(at, _ int64) bool {
			w := time.UnixMilli(at).UTC()
			return at%1000 == 0 && is(w.Hour(), w.Minute(), w.Second())
		}}
	}
	every := func(name string, d time.Duration) line {
		return line{name, engine.Schedule{Every: d}, func(at, made int64) bool { return (at-made)%d.Milliseconds() == 0 }}
	}
	once := func(name string, after time.Duration) line {
		due := midnight.Add(after).UnixMilli()
		return line{name, engine.Schedule{At: due}, func(at, _ int64) bool { return at == due }}
	}
	return []line{
		cron("second", "* * * * * *", "", func(_, _, _ int) bool { return true }),
		cron("minute", "0 * * * * *", "", func(_, _, s int) bool { return s == 0 }),
		cron("half", "30 * * * * *", "", func(_, _, s int) bool { return s == 30 }),
		cron("seven", "*/7 * * * * *", "", func(_, _, s int) bool { return s%7 == 0 }),
		cron("three", "0 3/10 * * * *", "", func(_, m, s int) bool { return s == 0 && m%10 == 3 }),
		cron("five", "0 5,35 * * * *", "", func(_, m, s int) bool { return s == 0 && m%30 == 5 }),
		cron("hour", "0 0 * * * *", "", func(_, m, s int) bool { return s == 0 && m == 0 }),
		cron("day", "0 0 0 * * *", "", func(h, m, s int) bool { return s == 0 && m == 0 && h == 0 }),
		cron("last", "59 59 23 * * *", "", func(h, m, s int) bool { return s == 59 && m == 59 && h == 23 }),
		cron("east", "0 30 5 * * *", "Asia/Kolkata", func(h, m, s int) bool { return s == 0 && m == 0 && h == 0 }),
		every("each-second", time.Second),
		every("quarter", 250*time.Millisecond),
		once("before", -time.Millisecond),
		once("at", 0),
		once("after", time.Millisecond),
		once("far", 70*time.Second),
	}
}

// dues tries each ms after the timer was made.
func (l line) dues(tm *engine.Timer, to int64) (ds []int64) {
	for at := tm.ValidFrom + 1; at <= to; at++ {
		if l.isDue(at, tm.CreatedAt) {
			ds = append(ds, at)
		}
	}
	return ds
}

// hour notes the calls.
type hour struct {
	now   func() time.Time
	mu    sync.Mutex
	calls map[engine.Key][]int64 // when, Unix ms
}

func (h *hour) Call(c *engine.Call) engine.Outcome {
	now := h.now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[c.Key] = append(h.calls[c.Key], now.UnixMilli())
	return engine.Outcome{Class: engine.ClassOK, Code: 200, Sent: now}
}

func (h *hour) has(keys map[engine.Key]bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k := range keys {
		if len(h.calls[k]) == 0 {
			return false
		}
	}
	return true
}

// bucket is a warm tier that notes what it told of one minute.
type bucket struct {
	engine.Warm
	minute int64
	mu     sync.Mutex
	loads  int // that told all of it
	told   map[engine.TimerID]int64
}

func (b *bucket) Load(ctx context.Context, of engine.Set, minute int64, yield func([]engine.Entry) error) error {
	if minute != b.minute {
		return b.Warm.Load(ctx, of, minute, yield)
	}
	told := map[engine.TimerID]int64{}
	err := b.Warm.Load(ctx, of, minute, func(es []engine.Entry) error {
		for _, x := range es {
			told[x.ID] = x.Due
		}
		return yield(es)
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil {
		b.loads++
		b.told = told
	}
	return err
}

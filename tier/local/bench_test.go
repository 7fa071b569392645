package local

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"xtimer/engine"
)

// openBench opens a store on the real disk.
func openBench(b *testing.B) *Store {
	b.Helper()
	s := New(Config{Dir: b.TempDir() + "/cold"})
	if err := s.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

// cpu is the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// settled waits until flushes and compactions are over, so that their cost
// counts, and reports wall and processor time for each of n things.
func settled(b *testing.B, s *Store, what string, n int, began time.Time, used time.Duration) {
	b.Helper()
	wall := time.Since(began)
	if _, err := s.db.AsyncFlush(); err != nil {
		b.Fatal(err)
	}
	for m := s.db.Metrics(); m.Compact.NumInProgress > 0 || m.Flush.NumInProgress > 0 || m.MemTable.Count > 1; m = s.db.Metrics() {
		time.Sleep(10 * time.Millisecond)
	}
	b.ReportMetric(float64(n)/wall.Seconds(), what+"/s")
	b.ReportMetric(float64((cpu()-used).Nanoseconds())/1000/float64(n), "cpu-µs/"+what)
	b.ReportMetric(0, "ns/op")
}

const benchNow int64 = 1_763_640_000_000

// benchTimer is a timer like a user's: a body, a header, a label.
func benchTimer(i int) *engine.Timer {
	t := &engine.Timer{
		Definition: engine.NewDefinition(), ID: engine.TimerID(1<<40 + i), Version: 1, Generation: 1,
		ValidFrom: benchNow, CreatedAt: benchNow, UpdatedAt: benchNow,
	}
	t.App, t.Name = "billing", fmt.Sprintf("order-%d-expire", i)
	t.At = benchNow + 3_600_000 + int64(i*7919%3_600_000)
	t.LastDue, t.Schedule.At = t.At, t.At
	t.Callback.URL = "http://127.0.0.1:8081/callbacks/orders"
	t.Callback.Body, t.Callback.HasBody = []byte(`{"order":1842,"action":"expire"}`), true
	return t
}

// BenchmarkApplyAll creates in batches of 1,000.
func BenchmarkApplyAll(b *testing.B) {
	s := openBench(b)
	began, used, n := time.Now(), cpu(), 0
	for b.Loop() {
		cs := make([]*engine.Change, 1000)
		for i := range cs {
			t := benchTimer(n)
			cs[i] = &engine.Change{Timer: t, ID: t.ID}
			n++
		}
		for _, a := range s.ApplyAll(context.Background(), cs) {
			if a.Err != nil {
				b.Fatal(a.Err)
			}
		}
	}
	settled(b, s, "create", n, began, used)
}

// BenchmarkApply creates one by one from 64 writers.
func BenchmarkApply(b *testing.B) {
	s := openBench(b)
	began, used := time.Now(), cpu()
	var next atomic.Int64
	var wg sync.WaitGroup
	total := int64(b.N)
	for range 64 {
		wg.Go(func() {
			for i := next.Add(1); i <= total; i = next.Add(1) {
				t := benchTimer(int(i))
				if _, err := s.Apply(context.Background(), &engine.Change{Timer: t, ID: t.ID}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	settled(b, s, "create", int(total), began, used)
}

// BenchmarkSettle stores records in batches of 10,000, with progress of all
// shards.
func BenchmarkSettle(b *testing.B) {
	for _, owed := range []int{0, 1000} {
		b.Run(fmt.Sprint("owed=", owed), func(b *testing.B) { benchSettle(b, owed) })
	}
}

func benchSettle(b *testing.B, owed int) {
	s := openBench(b)
	first := &engine.Settlement{Owner: "n"}
	for i := range owed {
		first.Owe = append(first.Owe, engine.Owed{Key: engine.Key{Timer: engine.TimerID(i + 1), Due: benchNow}, NotBefore: benchNow})
	}
	if err := s.Settle(b.Context(), first); err != nil {
		b.Fatal(err)
	}
	const batch = 10_000
	began, used, n := time.Now(), cpu(), 0
	recs := make([]engine.Record, batch)
	for b.Loop() {
		st := &engine.Settlement{Owner: "n", Tasks: recs}
		for i := range recs {
			t := &engine.Task{
				Key: engine.Key{Timer: engine.TimerID(1<<40 + n*7919%1_000_000), Due: benchNow + int64(n/100)},
				App: "billing", Name: "order-1842-expire", Generation: 1, Status: engine.Succeeded, Lateness: 400 * time.Microsecond,
				Attempts: []engine.Attempt{{N: 1, Started: benchNow * 1000, Took: time.Millisecond, Code: 200, Response: []byte(`{"ok":true}`)}},
				Ended:    benchNow + int64(n/100),
			}
			recs[i] = engine.Record{Key: t.Key, Status: t.Status, Encoded: engine.AppendTask(recs[i].Encoded[:0], t)}
			n++
		}
		for i := range engine.Shards {
			st.Marks = append(st.Marks, engine.Mark{Shard: i, W: benchNow + int64(n/100)})
		}
		if err := s.Settle(context.Background(), st); err != nil {
			b.Fatal(err)
		}
	}
	settled(b, s, "record", n, began, used)
}

// BenchmarkMillions fills a store with one-shots that are due later and reports
// what they cost in memory, how fast a restart opens, and how fast Due, Load,
// lists and Sweep are over them.
func BenchmarkMillions(b *testing.B) {
	for _, millions := range []int{1, 10} {
		b.Run(fmt.Sprint(millions), func(b *testing.B) {
			if testing.Short() && millions > 1 {
				b.Skip("takes a minute")
			}
			benchMillions(b, millions*1_000_000)
		})
	}
}

func benchMillions(b *testing.B, total int) {
	dir := b.TempDir() + "/cold"
	s := New(Config{Dir: dir})
	if err := s.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	before, began, used := rss(), time.Now(), cpu()
	for n := 0; n < total; {
		cs := make([]*engine.Change, 1000)
		for i := range cs {
			t := benchTimer(n)
			cs[i] = &engine.Change{Timer: t, ID: t.ID}
			n++
		}
		for _, a := range s.ApplyAll(context.Background(), cs) {
			if a.Err != nil {
				b.Fatal(a.Err)
			}
		}
	}
	settled(b, s, "create", total, began, used)
	runtime.GC()
	b.ReportMetric(float64(rss()-before)/(1<<20), "RSS-MB")

	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	began = time.Now()
	if err := s.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(time.Since(began).Seconds()*1000, "open-ms")
	defer s.Close()

	began = time.Now()
	n := 0
	var ids []engine.TimerID
	err := s.Due(b.Context(), engine.AllShards, benchNow, benchNow+2*3_600_000, func(cs []engine.Candidate) error {
		if n += len(cs); len(ids) < 100_000 {
			for _, c := range cs {
				ids = append(ids, c.ID)
			}
		}
		return nil
	})
	if err != nil || n != total {
		b.Fatal(n, err)
	}
	b.ReportMetric(float64(n)/time.Since(began).Seconds()/1e6, "due-M/s")

	began = time.Now()
	for part := ids; len(part) > 0; part = part[min(1000, len(part)):] {
		if _, err := s.Load(b.Context(), part[:min(1000, len(part))]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(len(ids))/1000, "load-µs")

	st := &engine.Settlement{Owner: "n"}
	for i := range engine.Shards {
		st.Marks = append(st.Marks, engine.Mark{Shard: i, W: benchNow + 2*3_600_000})
	}
	if err := s.Settle(b.Context(), st); err != nil {
		b.Fatal(err)
	}
	began, used = time.Now(), cpu()
	calls := 0
	for more := true; more && calls < 50; calls++ {
		if more, err = s.Sweep(b.Context(), benchNow, 0, 0); err != nil {
			b.Fatal(err)
		}
	}
	c, _ := s.Counts(b.Context())
	b.ReportMetric(float64((cpu()-used).Nanoseconds())/1000/float64(c.Finished), "archive-cpu-µs")
	b.ReportMetric(float64(time.Since(began).Milliseconds())/float64(calls), "ms/sweep")
	runtime.GC()
	b.ReportMetric(float64(rss()-before)/(1<<20), "RSS-MB-after")
}

// BenchmarkTimer reads one timer while nothing is written.
func BenchmarkTimer(b *testing.B) {
	s := openBench(b)
	cs := make([]*engine.Change, 4000)
	for i := range cs {
		t := benchTimer(i)
		cs[i] = &engine.Change{Timer: t, ID: t.ID}
	}
	s.ApplyAll(b.Context(), cs)
	i := 0
	for b.Loop() {
		if _, err := s.Timer(context.Background(), engine.TimerID(1<<40+i%4000)); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

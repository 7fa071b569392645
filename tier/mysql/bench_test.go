package mysql

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/tier/servertest"
)

// openBench opens a store on a server of its own, with room in memory.
func openBench(b *testing.B) *bench {
	b.Helper()
	server := servertest.MariaDB(b, "--innodb-buffer-pool-size=1G", "--innodb-log-file-size=512M")
	m := &bench{B: b, Store: open(b, New(Config{DSN: server.DSN("")})), server: server}
	m.begin()
	return m
}

// bench is a store under measurement.
type bench struct {
	*testing.B
	*Store
	server       *servertest.Server
	began        time.Time
	ours, theirs time.Duration
}

// cpu is the processor time that this process, and the server, have used.
func (b *bench) cpu() (ours, theirs time.Duration) {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), b.server.CPU()
}

func (b *bench) begin() {
	b.began = time.Now()
	b.ours, b.theirs = b.cpu()
}

// tell reports wall and processor time for each of n things.
func (b *bench) tell(what string, n int) {
	b.Helper()
	b.ReportMetric(float64(n)/time.Since(b.began).Seconds(), what+"/s")
	ours, theirs := b.cpu()
	b.ReportMetric(float64((ours-b.ours).Nanoseconds())/1000/float64(n), "cpu-µs/"+what)
	b.ReportMetric(float64((theirs-b.theirs).Nanoseconds())/1000/float64(n), "server-µs/"+what)
	b.ReportMetric(0, "ns/op")
}

const benchNow int64 = 1_763_640_000_000

// benchTimer is a timer like a user's: a body, a name.
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

func createBatch(b *testing.B, s *bench, from, n int) {
	b.Helper()
	cs := make([]*engine.Change, n)
	for i := range cs {
		t := benchTimer(from + i)
		cs[i] = &engine.Change{Timer: t, ID: t.ID, At: benchNow}
	}
	for _, a := range s.ApplyAll(context.Background(), cs) {
		if a.Err != nil {
			b.Fatal(a.Err)
		}
	}
}

// BenchmarkApplyAll creates in batches of 1,000, from one and from four callers.
func BenchmarkApplyAll(b *testing.B) {
	for _, callers := range []int{1, 4} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			s := openBench(b)
			s.begin()
			var next atomic.Int64
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						createBatch(b, s, int(i)*1000, 1000)
					}
				})
			}
			wg.Wait()
			s.tell("create", b.N*1000)
		})
	}
}

// BenchmarkApply creates one by one from 64 callers.
func BenchmarkApply(b *testing.B) {
	s := openBench(b)
	s.begin()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				t := benchTimer(int(i))
				if _, err := s.Apply(context.Background(), &engine.Change{Timer: t, ID: t.ID, At: benchNow}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	s.tell("create", b.N)
}

// BenchmarkSettle stores records in batches of 10,000, with progress of all shards.
func BenchmarkSettle(b *testing.B) {
	s := openBench(b)
	if _, err := s.Sweep(b.Context(), benchNow, 0, 0); err != nil {
		b.Fatal(err)
	}
	s.begin()
	n := 0
	for st := (&engine.Settlement{Owner: "n"}); b.Loop(); {
		n = benchSettlement(st, n)
		if err := s.Settle(context.Background(), st); err != nil {
			b.Fatal(err)
		}
	}
	s.tell("record", n)
}

// benchSettlement fills a settlement with the 10,000 records from the nth on, and progress of
// all shards; it returns the place of the next.
func benchSettlement(st *engine.Settlement, n int) int {
	if st.Tasks == nil {
		st.Tasks = make([]engine.Record, 10_000)
	}
	for i := range st.Tasks {
		t := &engine.Task{
			Key: engine.Key{Timer: engine.TimerID(1<<40 + n*7919%1_000_000), Due: benchNow + int64(n/100)},
			App: "billing", Name: "order-1842-expire", Generation: 1, Status: engine.Succeeded, Lateness: 400 * time.Microsecond,
			Attempts: []engine.Attempt{{N: 1, Started: benchNow * 1000, Took: time.Millisecond, Code: 200, Response: []byte(`{"ok":true}`)}},
			Ended:    benchNow + int64(n/100),
		}
		st.Tasks[i] = engine.Record{Key: t.Key, Status: t.Status, Encoded: engine.AppendTask(st.Tasks[i].Encoded[:0], t)}
		n++
	}
	st.Marks = st.Marks[:0]
	for i := range engine.Shards {
		st.Marks = append(st.Marks, engine.Mark{Shard: i, W: benchNow + int64(n/100)})
	}
	return n
}

// BenchmarkIntents has 1,000 at_most_once calls a second wait until it is stored that they
// begin, for 10 s, while 10,000 records are settled each second: by a settlement that waits for
// the one under way, and by one that is stored beside it. Calls that come while intents are
// stored share the next settlement.
func BenchmarkIntents(b *testing.B) {
	for _, beside := range []bool{false, true} {
		b.Run(fmt.Sprint("beside=", beside), func(b *testing.B) {
			s := openBench(b)
			if _, err := s.Sweep(b.Context(), benchNow, 0, 0); err != nil {
				b.Fatal(err)
			}
			shards, _, err := s.Take(b.Context(), "n")
			if err != nil {
				b.Fatal(err)
			}
			var burst sync.WaitGroup
			s.begin()
			began := time.Now()
			const rounds = 10
			burst.Go(func() {
				n := 0
				st := &engine.Settlement{Owner: "n"}
				for i := range rounds {
					n = benchSettlement(st, n)
					for i := range st.Marks {
						st.Marks[i].Fence = shards[i].Fence
					}
					time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second)))
					if err := s.Settle(context.Background(), st); err != nil {
						b.Error(err)
					}
				}
			})
			late := s.intend(began, rounds*1000, beside)
			burst.Wait()
			slices.Sort(late)
			s.tell("intent", len(late))
			for _, q := range []struct {
				name string
				at   int
			}{{"p50", 50}, {"p99", 99}} {
				b.ReportMetric(float64(late[len(late)*q.at/100].Microseconds())/1000, "intent-"+q.name+"-ms")
			}
		})
	}
}

// intend stores so many intents, one each millisecond, and
// returns how long each took.
func (b *bench) intend(began time.Time, n int, beside bool) (late []time.Duration) {
	st := &engine.Settlement{Owner: "n", Beside: beside}
	for len(late) < n {
		from := len(late)
		came := min(int(time.Since(began).Milliseconds()), n)
		if came == from {
			time.Sleep(time.Until(began.Add(time.Duration(from+1) * time.Millisecond)))
			continue
		}
		st.Owe = st.Owe[:0]
		for i := from; i < came; i++ {
			st.Owe = append(st.Owe, engine.Owed{
				Key: engine.Key{Timer: engine.TimerID(1<<40 + i), Due: benchNow}, Generation: 1, Begun: true, NotBefore: benchNow, Lane: 1,
			})
		}
		if err := b.Settle(context.Background(), st); err != nil {
			b.Fatal(err)
		}
		for i := from; i < came; i++ {
			late = append(late, time.Since(began.Add(time.Duration(i)*time.Millisecond)))
		}
	}
	return late
}

// BenchmarkDue reads 200,000 one-shots of an hour, definitions and all.
func BenchmarkDue(b *testing.B) {
	const timers = 200_000
	s := openBench(b)
	for i := range timers / 1000 {
		createBatch(b, s, i*1000, 1000)
	}
	s.begin()
	n := 0
	for range b.N {
		err := s.Due(b.Context(), engine.AllShards, benchNow, benchNow+2*3_600_000, func(cs []engine.Candidate) error { n += len(cs); return nil })
		if err != nil || n%timers != 0 {
			b.Fatal(n, err)
		}
	}
	s.tell("occurrence", n)
}

// BenchmarkUpgradeToShards upgrades a database of schema 7 with so many thousand timers.
func BenchmarkUpgradeToShards(b *testing.B) {
	server := servertest.MariaDB(b, "--innodb-buffer-pool-size=1G", "--innodb-log-file-size=512M")
	f := &schema7{TB: b, Store: New(Config{DSN: server.DSN("")})}
	var err error
	if f.pools, err = connect(f.cfg.DSN); err != nil {
		b.Fatal(err)
	}
	defer f.release()
	if err := f.migrateTo(b.Context(), migrations()[:7]); err != nil {
		b.Fatal(err)
	}
	for range b.N {
		f.insert(1000, 0)
	}
	m := &bench{B: b, Store: f.Store, server: server}
	m.begin()
	if err := f.migrateTo(b.Context(), migrations()[:8]); err != nil {
		b.Fatal(err)
	}
	m.tell("timer", b.N*1000)
}

// benchNodes are tables of nodes of several sizes.
func benchNodes(b *testing.B, run func(b *bench, m *Members, nodes []engine.Node)) {
	for _, n := range []int{3, 10, 100} {
		b.Run(fmt.Sprint("nodes=", n), func(b *testing.B) {
			s := openBench(b)
			m := NewMembers(s.Store)
			nodes := make([]engine.Node, n)
			for i := range nodes {
				nodes[i] = engine.Node{Name: fmt.Sprintf("xtimer-%d.xtimer.default.svc", i), Life: uint64(i + 1), State: engine.Serving, Weight: 1}
				if err := m.Join(b.Context(), nodes[i], engine.Pulse{}); err != nil {
					b.Fatal(err)
				}
			}
			s.begin()
			run(s, m, nodes)
		})
	}
}

// BenchmarkBeat beats for one node after the other.
func BenchmarkBeat(b *testing.B) {
	benchNodes(b, func(b *bench, m *Members, nodes []engine.Node) {
		for i := range b.N {
			if err := m.Beat(b.Context(), nodes[i%len(nodes)]); err != nil {
				b.Fatal(err)
			}
		}
		b.tell("beat", b.N)
	})
}

// BenchmarkLook looks while no shard moves.
func BenchmarkLook(b *testing.B) {
	benchNodes(b, func(b *bench, m *Members, nodes []engine.Node) {
		first, err := m.Look(b.Context(), 0)
		if err != nil {
			b.Fatal(err)
		}
		for range b.N {
			if seen, err := m.Look(b.Context(), first.Moves); err != nil || len(seen.Nodes) != len(nodes) || seen.Shards != nil {
				b.Fatal(seen, err)
			}
		}
		b.tell("look", b.N)
	})
}

// BenchmarkLookMoved looks after shards have moved.
func BenchmarkLookMoved(b *testing.B) {
	benchNodes(b, func(b *bench, m *Members, nodes []engine.Node) {
		for range b.N {
			if seen, err := m.Look(b.Context(), 0); err != nil || len(seen.Nodes) != len(nodes) || seen.Shards == nil {
				b.Fatal(seen, err)
			}
		}
		b.tell("look", b.N)
	})
}

// BenchmarkObjects is a second of a node with 10,000 objects: what it asks while none is changed, and the read of all.
func BenchmarkObjects(b *testing.B) {
	s := openBench(b)
	for from := 0; from < 10_000; from += 250 {
		var puts []engine.ObjectPut
		for i := range 250 {
			k := engine.ObjectKey{Kind: "flow", App: "billing", Name: fmt.Sprintf("order-%d", from+i)}
			body := []byte(`{"rate":100,"per":"1s","concurrency":10}`)
			puts = append(puts, engine.ObjectPut{Object: &engine.Object{ObjectKey: k, Version: 1, UpdatedAt: benchNow, UpdatedBy: "editor", Body: body}})
		}
		if err := s.PutObjects(b.Context(), puts...); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("revision", func(b *testing.B) {
		s := &bench{B: b, Store: s.Store, server: s.server}
		s.begin()
		for range b.N {
			if _, err := s.ObjectsRevision(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		s.tell("second", b.N)
	})
	b.Run("all", func(b *testing.B) {
		s := &bench{B: b, Store: s.Store, server: s.server}
		s.begin()
		for range b.N {
			if err := s.Objects(b.Context(), func([]engine.Object) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
		s.tell("second", b.N)
	})
}

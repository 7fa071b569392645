package cluster

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// told runs a life beside a node that beats, and returns what it logged. slow is how long each
// answer to a beat takes.
func told(t *testing.T, ahead time.Duration, slow *atomic.Int64, script func(m *Member, table *memory.Members, gained *atomic.Int64)) string {
	var log bytes.Buffer
	var gained atomic.Int64
	cfg := Config{
		Wall: func() time.Time { return time.Now().Add(ahead) },
		Gain: func(list []Gained) { gained.Add(int64(len(list))) },
		Log:  slog.New(slog.NewTextHandler(&log, nil)),
	}
	beside(t, cfg, slow, func(m *Member, table *memory.Members) { script(m, table, &gained) })
	return log.String()
}

// beside runs a life beside a node that beats, and takes nothing.
func beside(t *testing.T, cfg Config, slow *atomic.Int64, script func(m *Member, table *memory.Members)) {
	synctest.Test(t, func(t *testing.T) {
		table, began := memory.NewMembers(memory.NewCold()), time.Now()
		other := engine.Node{Name: "b", Life: 2, State: engine.Serving}
		if err := table.Join(t.Context(), other, engine.Pulse{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var beats sync.WaitGroup
		beats.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(usual.Beat) {
				_ = table.Beat(ctx, other)
			}
		})
		cfg.Node, cfg.Members, cfg.Times = engine.Node{Name: "a", Life: 1}, slowTable{table, slow}, usual
		cfg.Boot, cfg.After = func() time.Duration { return time.Since(began) }, time.After
		m := New(cfg)
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		script(m, table)
		cancel()
		<-ended
		beats.Wait()
	})
}

// slowTable answers beats late.
type slowTable struct {
	*memory.Members
	slow *atomic.Int64
}

func (x slowTable) Beat(ctx context.Context, n engine.Node) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(x.slow.Load())):
	}
	return x.Members.Beat(ctx, n)
}

// A node whose clock is wrong when it starts says so before it joins, joins as unfit, and is
// given nothing, also where shards are free.
func TestWrongClockAtTheStart(t *testing.T) {
	for _, ahead := range []time.Duration{5 * time.Second, -5 * time.Second} {
		log := told(t, ahead, new(atomic.Int64), func(_ *Member, table *memory.Members, gained *atomic.Int64) {
			for range 20 {
				time.Sleep(50 * ms)
				seen, err := table.Look(context.Background(), 0)
				if err != nil {
					t.Fatal(err)
				}
				if n := seen.Nodes[0]; n.Name == "a" && n.State != engine.Unfit {
					t.Errorf("the node joined in the state %d", n.State)
				}
			}
			if gained.Load() > 0 {
				t.Errorf("a node with a wrong clock got %d shards", gained.Load())
			}
		})
		clock, joined := strings.Index(log, "the clock of this node differs by more than 500ms"), strings.Index(log, "joined the cluster")
		if clock < 0 || joined < clock || !strings.Contains(log, "ahead_of_database="+ahead.String()) {
			t.Errorf("the log says: %s", log)
		}
	}
}

// A process starts again with a wrong clock while another node serves: it does not begin a life that would get the shards of
// its former life, and decide by that clock what was due there. When the other node has them, it joins.
func TestWrongClockAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, began := memory.NewMembers(memory.NewCold()), time.Now()
		for _, n := range []engine.Node{{Name: "b", Life: 2, State: engine.Serving}, {Name: "a", Life: 7, State: engine.Serving}} {
			if err := table.Join(t.Context(), n, engine.Pulse{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := table.Take(t.Context(), 7, engine.AllShards); err != nil {
			t.Fatal(err)
		}
		var gained atomic.Int64
		m := New(Config{
			Node: engine.Node{Name: "a", Life: 8}, Members: table, Times: usual, Log: slog.New(slog.DiscardHandler),
			Boot: func() time.Duration { return time.Since(began) }, After: time.After,
			Wall: func() time.Time { return time.Now().Add(time.Hour) },
			Gain: func(list []Gained) { gained.Add(int64(len(list))) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		node := func() engine.Node {
			seen, err := table.Look(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			return seen.Nodes[0]
		}
		for range 40 {
			if err := table.Beat(t.Context(), engine.Node{Name: "b", Life: 2, State: engine.Serving}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(250 * time.Millisecond)
		}
		if n := node(); n.Life != 7 {
			t.Errorf("the node began life %d", n.Life)
		}
		former := node()
		if err := table.Evict(t.Context(), 2, former.Pulse()); err != nil {
			t.Fatal(err)
		}
		if err := table.Take(t.Context(), 2, engine.AllShards); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := node(); n.Life != 8 || n.State != engine.Unfit || gained.Load() > 0 {
			t.Errorf("the node has life %d, state %v, and gained %d shards", n.Life, n.State, gained.Load())
		}
		cancel()
		<-ended
	})
}

// All processes of two nodes were killed at once, and one starts again, or both, with clocks that are an hour ahead of the
// table's. Nobody else can take the shards: they serve.
func TestWrongClockAndNobodyLives(t *testing.T) {
	for _, both := range []bool{false, true} {
		t.Run(fmt.Sprint("both=", both), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table, began := memory.NewMembers(memory.NewCold()), time.Now()
				for i, name := range []string{"a", "b"} {
					if err := table.Join(t.Context(), engine.Node{Name: name, Life: uint64(7 + i), State: engine.Serving}, engine.Pulse{}); err != nil {
						t.Fatal(err)
					}
				}
				var half [2]engine.Set
				for s := range engine.Shards {
					half[s%2] = half[s%2].Union(engine.SetOf(s))
				}
				for i := range half {
					if err := table.Take(t.Context(), uint64(7+i), half[i]); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				var gained atomic.Int64
				var ends []chan error
				var ms []*Member
				for i, name := range []string{"a", "b"} {
					if i == 1 && !both {
						break
					}
					m := New(Config{
						Node: engine.Node{Name: name, Life: uint64(17 + i)}, Members: table, Times: usual, Log: slog.New(slog.DiscardHandler),
						Boot: func() time.Duration { return time.Since(began) }, After: time.After,
						Wall: func() time.Time { return time.Now().Add(time.Hour) },
						Gain: func(list []Gained) { gained.Add(int64(len(list))) },
					})
					ended := make(chan error, 1)
					go func() { ended <- m.Run(ctx) }()
					ends, ms = append(ends, ended), append(ms, m)
				}
				time.Sleep(time.Hour)
				seen, _ := table.Look(t.Context(), 0)
				for i := range ms {
					if n := seen.Nodes[i]; n.Life < 17 || !ms[i].Fresh() {
						t.Errorf("after an hour node %s has life %d, fresh %v", n.Name, n.Life, ms[i].Fresh())
					}
				}
				if gained.Load() != engine.Shards {
					t.Errorf("%d of %d shards are served", gained.Load(), engine.Shards)
				}
				cancel()
				for _, e := range ends {
					<-e
				}
			})
		})
	}
}

// A beat that takes too long for the lease is told of once, and is known for some minutes.
func TestLeaseTooShort(t *testing.T) {
	var slow atomic.Int64
	const text = "the database did not confirm a beat of this node in time"
	log := told(t, 0, &slow, func(m *Member, _ *memory.Members, _ *atomic.Int64) {
		is := func(most time.Duration, want bool) {
			t.Helper()
			if took, tooSlow := m.SlowestBeat(); took > most || took < most-100*ms || tooSlow != want {
				t.Errorf("the slowest beat took %v, too slow: %v", took, tooSlow)
			}
		}
		slow.Store(int64(700 * ms))
		time.Sleep(10 * time.Second)
		is(700*ms, false)
		for range 3 {
			slow.Store(int64(2 * time.Second))
			time.Sleep(time.Second)
			slow.Store(0)
			time.Sleep(time.Minute)
			is(800*ms, true)
		}
		time.Sleep(2 * answersSpan)
		is(0, false)
	})
	if strings.Count(log, text) != 1 {
		t.Errorf("the log says: %s", log)
	}
	log = told(t, 0, &slow, func(*Member, *memory.Members, *atomic.Int64) { time.Sleep(time.Minute) })
	if strings.Contains(log, text) {
		t.Errorf("of a quick table the log says: %s", log)
	}
}

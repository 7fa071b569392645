package simulator

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"xtimer/engine"
	"xtimer/tier/local"
	"xtimer/tier/memory"
	"xtimer/tier/tiertest"
	"xtimer/wal"
)

// failing is a process whose disk fails once. It runs outside of a bubble: what
// Pebble leaves blocked when its disk has failed ends with the process, and a
// bubble waits for it.
type failing struct {
	e    *engine.Engine
	stop context.CancelFunc
	end  chan error
	gone chan struct{} // closed when the process has ended itself

	mu     sync.Mutex // guards all below
	over   bool
	disk   *vfs.MemFS // in the end as the next process finds it
	kept   int        // of what is not synced, percent
	writes int        // operations so far
	failAt int        // the one that fails; 0: none
}

// run starts a process over a disk.
func (p *failing) run(t *testing.T) {
	t.Helper()
	p.end, p.gone = make(chan error, 1), make(chan struct{})
	fs := tiertest.Watch(p.disk, func(op errorfs.Op) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			if p.writes++; p.writes == p.failAt {
				return syscall.EIO
			}
		}
		return nil
	})
	exit := func(int) {
		p.mu.Lock()
		if !p.over {
			p.over = true
			p.disk = p.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: p.kept, RNG: rand.New(rand.NewPCG(uint64(p.failAt), 4))})
			close(p.gone)
			p.stop()
		}
		p.mu.Unlock()
		select {}
	}
	cache := pebble.NewCache(4 << 20)
	quiet := slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.e = engine.New(engine.Config{
		Cold:    local.New(local.Config{Dir: "/data/cold", FS: fs, Cache: cache, MemTableBytes: 256 << 10, Exit: exit}),
		Journal: wal.New(wal.Config{Dir: "/data/journal", FS: fs, Cache: cache, MemTable: 256 << 10, Logger: quiet, Exit: exit}),
		Warm:    memory.NewWarm(), Caller: p, Log: quiet, Metrics: metrics.NewSet(),
	})
	if err := p.e.Open(ctx); err != nil {
		t.Fatal(err)
	}
	go func() { p.end <- p.e.Run(ctx) }()
}

// Call is the receiver of a process.
func (p *failing) Call(c *engine.Call) engine.Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return engine.Outcome{Class: engine.ClassUnknown, ErrorClass: "dead"}
	}
	return engine.Outcome{Class: engine.ClassOK, Code: 200, Sent: time.Now()}
}

// create makes timers until the process has ended itself, or the operation that
// fails, the n-th from now on, is long past; it tells which were acknowledged.
func (p *failing) create(t *testing.T, n int) (acked []engine.TimerID) {
	t.Helper()
	until(t, "it does not start", func() bool { return p.e.Ready() == nil })
	p.mu.Lock()
	p.writes, p.failAt = 0, n
	p.mu.Unlock()
	var makers sync.WaitGroup
	for maker := range 4 {
		makers.Go(func() {
			for i := range 2000 {
				d := engine.NewDefinition()
				d.App, d.Name, d.Callback.URL = "app", fmt.Sprint(maker, "-", i), "http://127.0.0.1:1/"
				d.Schedule = engine.Schedule{Delay: time.Duration(i%200) * time.Millisecond, HasDelay: true}
				c := p.e.Create(context.Background(), d, nil)
				p.mu.Lock()
				enough := p.over || p.writes > p.failAt+50
				if c.Err == nil && !p.over {
					acked = append(acked, c.View.ID)
				}
				p.mu.Unlock()
				if enough || c.Err != nil { // its disk has failed, and it is about to end
					return
				}
			}
		})
	}
	made := make(chan struct{})
	go func() {
		makers.Wait()
		close(made)
	}()
	select {
	case <-made:
	case <-p.gone: // a create that waits for the dead waits for ever
	case <-time.After(time.Minute):
		t.Fatal("the creates do not end")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(acked)
}

// until waits for a condition, for a minute at most.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// TestDiskErrors lets one write or sync of the disk fail: either the process goes
// on, or it ends itself, and the next one has all that was acknowledged.
func TestDiskErrors(t *testing.T) {
	ended := 0
	for i := range 6 {
		n := 30 + 37*i
		p := &failing{disk: vfs.NewCrashableMem(), kept: i % 3 * 50}
		p.run(t)
		acked := p.create(t, n)
		if len(acked) == 0 {
			t.Fatal("nothing was acknowledged: the run proves nothing")
		}
		for _, id := range acked {
			until(t, fmt.Sprintf("error at operation %d: timer %s was acknowledged, and is not called", n, id), func() bool {
				select {
				case <-p.gone:
					ended++
					p = &failing{disk: p.disk}
					p.run(t)
				default:
				}
				ts, _, err := p.e.Tasks(context.Background(), engine.TaskFilter{Timer: id}, engine.Key{}, 1)
				return err == nil && len(ts) == 1 && ts[0].Status == engine.Succeeded
			})
		}
		p.stop()
		if err := <-p.end; err != nil {
			t.Error(err)
		}
	}
	if ended == 0 {
		t.Error("no process has ended itself: nothing was hit")
	}
	t.Logf("%d of 6 processes ended themselves", ended)
}

package simulator

import (
	"context"
	"flag"
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
	"xtimer/engine/scheduler"
	"xtimer/tier/local"
	"xtimer/tier/memory"
	"xtimer/tier/tiertest"
	"xtimer/wal"
)

// every asks for the whole of TestDiskErrors.
var every = flag.Bool("every", false, "TestDiskErrors fails each of the first 300 operations of the disk")

// patience is how long anything may take of a service whose disk fails.
const patience = 10 * time.Second

// failing is a process whose disk fails, once or from then on. It runs outside of a bubble: what
// Pebble leaves blocked when its disk has failed ends with the process, and a
// bubble waits for it.
type failing struct {
	e    *scheduler.Scheduler
	stop context.CancelFunc
	end  chan error
	gone chan struct{} // closed when the process has ended itself
	// What the disk says when it fails, and whether it goes on failing.
	fault  error
	sticky bool
	hit    chan struct{} // closed when it has failed

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
	p.end, p.gone, p.hit = make(chan error, 1), make(chan struct{}), make(chan struct{})
	fs := tiertest.Watch(p.disk, func(op errorfs.Op) error {
		p.mu.Lock()
		if p.over {
			p.mu.Unlock()
			select {} // or its flushes, which fail at once, go on for ever
		}
		defer p.mu.Unlock()
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			p.writes++
			if p.writes == p.failAt {
				close(p.hit)
			}
			if p.writes == p.failAt || p.sticky && p.failAt > 0 && p.writes > p.failAt {
				return p.fault
			}
		}
		return nil
	})
	exit := func(status int) {
		if status != 70 {
			t.Errorf("it ends with status %d", status)
		}
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
	p.e = scheduler.New(scheduler.Config{
		Cold:    local.New(local.Config{Dir: "/data/cold", FS: fs, Cache: cache, MemTableBytes: 256 << 10, Exit: exit, Log: quiet}),
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
				if c.Err != nil {
					select {
					case <-p.hit:
						<-p.gone // it is about to end
					default:
						t.Errorf("a create failed, and the disk has not: %v", c.Err)
					}
				}
				if enough || c.Err != nil {
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
	case <-p.hit:
		select {
		case <-made:
		case <-p.gone: // a create that waits for the dead waits for ever
		case <-time.After(patience):
			t.Fatalf("%s: the creates are not answered, or fail and it does not end", p)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(acked)
}

// until waits for a condition, while there is patience.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// TestDiskErrors fails the n-th operation of the disk, or all from there on, for
// one n in so many: either the process goes on, or it ends itself within 10 s, and
// the next one has all that was acknowledged.
func TestDiskErrors(t *testing.T) {
	step := 61 // the rest by -run TestDiskErrors -every
	if *every {
		step = 1
	}
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC} {
		for _, sticky := range []bool{false, true} {
			ran, ended := 0, 0
			for n := 1; n <= 300; n += step {
				ran++
				p := &failing{disk: vfs.NewCrashableMem(), kept: n % 3 * 50, fault: fault, sticky: sticky}
				if diskError(t, p, n) {
					ended++
				}
			}
			if ended == 0 || sticky && ended < ran {
				t.Errorf("%v, sticky %v: %d of %d processes ended themselves", fault, sticky, ended, ran)
			}
			t.Logf("%v, sticky %v: %d of %d processes ended themselves", fault, sticky, ended, ran)
		}
	}
}

func (p *failing) String() string {
	return fmt.Sprintf("%v at operation %d, sticky %v", p.fault, p.failAt, p.sticky)
}

// diskError runs a process whose n-th disk operation fails, and the next one if
// it ended itself.
func diskError(t *testing.T, p *failing, n int) (ended bool) {
	t.Helper()
	p.run(t)
	acked := p.create(t, n)
	if len(acked) == 0 && n > 30 {
		t.Fatalf("%s: nothing was acknowledged: the run proves nothing", p)
	}
	what := p.String()
	next := func() {
		select {
		case <-p.gone:
			ended = true
			p = &failing{disk: p.disk}
			p.run(t)
		default:
		}
	}
	called := func() {
		next()
		for _, id := range acked {
			until(t, fmt.Sprintf("%s: timer %s was acknowledged, and is not called", what, id), func() bool {
				next()
				ts, _, err := p.e.Tasks(context.Background(), engine.TaskFilter{Timer: id}, engine.Key{}, 1)
				return err == nil && len(ts) == 1 && ts[0].Status == engine.Succeeded
			})
		}
	}
	called()
	for range 2 {
		p.stop()
		select {
		case err := <-p.end:
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			return ended
		case <-p.gone:
			called()
		case <-time.After(patience):
			t.Fatalf("%s: it does not stop", what)
		}
	}
	return ended
}

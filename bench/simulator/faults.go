package simulator

import (
	"context"
	"runtime"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"xtimer/engine"
	"xtimer/tier/local"
	"xtimer/tier/memory"
	"xtimer/tier/tiertest"
)

// trouble is what ails the machine. Its fields are the driver's to set, under
// machine.mu.
type trouble struct {
	crashAt  int // the machine dies when this many more operations of the disk are done; 0: it does not
	crash    Step
	pace     time.Duration // of a sync
	stall    time.Duration // of the next sync
	warmAway bool
	coldAway bool
	coldMute bool
	lost     func(engine.TimerID) bool // entries that the warm tier has lost
}

// disk is the machine's disk as a life sees it.
func (m *machine) diskOf(l *life) vfs.FS {
	return tiertest.Watch(l.disk, func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
			return nil
		}
		sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData
		m.mu.Lock()
		var wait time.Duration
		dies := false
		if !l.over {
			if m.trouble.crashAt > 0 {
				m.trouble.crashAt--
				dies = m.trouble.crashAt == 0
			}
			// Only a sync of a log is slow: Pebble does it without a lock, on
			// which others would wait, and a bubble's time with them.
			if sync && strings.HasSuffix(op.Path, ".log") {
				wait, m.trouble.stall = m.script.Pace+m.trouble.pace+m.trouble.stall, 0
				if wait > m.script.Pace {
					m.slow = m.since() + wait
				}
			}
		}
		st := m.trouble.crash
		m.mu.Unlock()
		if dies {
			m.die(l, st.Kept, st.Draw)
		}
		if wait > 0 && !locked() {
			select { // what is left of a dead life must get to its end, see tier/local.Store.Close
			case <-l.gone:
			case <-time.After(wait):
			}
		}
		return nil
	})
}

// locked reports whether Pebble syncs with a lock held: at its Close, and when it goes on
// to the next log (seed 430206, with a backup that waited for that lock).
func locked() bool {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, "pebble/v2.(*DB).Close") || strings.HasSuffix(f.Function, "pebble/v2.(*DB).makeRoomForWrite") {
			return true
		}
		if !more {
			return false
		}
	}
}

// warm is the warm tier of a life.
type warm struct {
	*memory.Warm
	m *machine
}

func (w *warm) away() error {
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	if w.m.trouble.warmAway {
		return engine.ErrUnavailable
	}
	return nil
}

func (w *warm) Open(ctx context.Context) error {
	if err := w.away(); err != nil {
		return err
	}
	return w.Warm.Open(ctx)
}

func (w *warm) Add(ctx context.Context, es []engine.Entry) error {
	if err := w.away(); err != nil {
		return err
	}
	return w.Warm.Add(ctx, es)
}

func (w *warm) Seal(ctx context.Context, of engine.Set, from, to int64) error {
	if err := w.away(); err != nil {
		return err
	}
	return w.Warm.Seal(ctx, of, from, to)
}

// Load finds a gap where entries were lost, as a tier with a manifest does.
func (w *warm) Load(ctx context.Context, of engine.Set, minute int64, yield func([]engine.Entry) error) error {
	if err := w.away(); err != nil {
		return err
	}
	w.m.mu.Lock()
	lost := w.m.trouble.lost
	w.m.trouble.lost = nil
	w.m.mu.Unlock()
	if lost != nil {
		return engine.ErrGap
	}
	return w.Warm.Load(ctx, of, minute, yield)
}

func (w *warm) Drop(ctx context.Context, before int64) error {
	if err := w.away(); err != nil {
		return err
	}
	return w.Warm.Drop(ctx, before)
}

// cold is the cold tier of a life, with the troubles of one that is elsewhere.
type cold struct {
	*local.Store
	m *machine
	l *life
}

// read reports whether a read fails.
func (c *cold) read() error {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.m.trouble.coldAway && !c.l.over {
		return engine.ErrUnavailable
	}
	return nil
}

// write makes a write, unless the tier is away; mute, it makes it and says that
// it did not answer.
func (c *cold) write(f func() error) error {
	if err := c.read(); err != nil {
		return err
	}
	err := f()
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.m.trouble.coldMute && !c.l.over && err == nil {
		return engine.ErrUnavailable
	}
	return err
}

func (c *cold) Apply(ctx context.Context, ch *engine.Change) (a engine.Applied, err error) {
	err = c.write(func() (err error) { a, err = c.Store.Apply(ctx, ch); return err })
	return a, err
}

func (c *cold) Settle(ctx context.Context, s *engine.Settlement) error {
	return c.write(func() error { return c.Store.Settle(ctx, s) })
}

func (c *cold) Raise(ctx context.Context, bs []engine.Bound) error {
	return c.write(func() error { return c.Store.Raise(ctx, bs) })
}

// Sweep is one at a time: the store would wait for the other at a mutex, and a
// bubble's time with it.
func (c *cold) Sweep(ctx context.Context, now, finishedBefore, historyBefore int64) (bool, error) {
	c.l.sweeping <- struct{}{}
	defer func() { <-c.l.sweeping }()
	return c.Store.Sweep(ctx, now, finishedBefore, historyBefore)
}

func (c *cold) Timer(ctx context.Context, id engine.TimerID) (*engine.Timer, error) {
	if err := c.read(); err != nil {
		return nil, err
	}
	return c.Store.Timer(ctx, id)
}

func (c *cold) TimerByName(ctx context.Context, app, name string) (*engine.Timer, error) {
	if err := c.read(); err != nil {
		return nil, err
	}
	return c.Store.TimerByName(ctx, app, name)
}

func (c *cold) Load(ctx context.Context, ids []engine.TimerID) ([][]byte, error) {
	if err := c.read(); err != nil {
		return nil, err
	}
	return c.Store.Load(ctx, ids)
}

func (c *cold) Due(ctx context.Context, of engine.Set, from, to int64, yield func([]engine.Candidate) error) error {
	if err := c.read(); err != nil {
		return err
	}
	return c.Store.Due(ctx, of, from, to, yield)
}

func (c *cold) Owed(ctx context.Context, of engine.Set, from, to int64, yield func([]engine.Owed) error) error {
	if err := c.read(); err != nil {
		return err
	}
	return c.Store.Owed(ctx, of, from, to, yield)
}

func (c *cold) OwedPage(ctx context.Context, id engine.TimerID, after int64, limit int) ([]engine.Owed, error) {
	if err := c.read(); err != nil {
		return nil, err
	}
	return c.Store.OwedPage(ctx, id, after, limit)
}

func (c *cold) Take(ctx context.Context, owner string) ([]engine.Shard, engine.TimerID, error) {
	if err := c.read(); err != nil {
		return nil, 0, err
	}
	shards, newest, err := c.Store.Take(ctx, owner)
	if err == nil { // now the start looks what is late
		c.m.mu.Lock()
		c.l.look = look{c.m.since(), c.m.wall().UnixMilli()}
		c.m.looks = append(c.m.looks, c.l.look)
		c.m.mu.Unlock()
	}
	return shards, newest, err
}

package wal

import (
	"context"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"xtimer/engine/failpoint"
)

// Run commits what is appended until ctx ends, then the rest. While it runs,
// nothing else writes to the store.
func (l *Log) Run(ctx context.Context) error {
	l.mu.Lock()
	l.running = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.running = false
		l.mu.Unlock()
	}()
	c := committer{Log: l}
	c.alarm = time.AfterFunc(l.cfg.StallAfter, c.stalled)
	c.alarm.Stop()
	defer c.alarm.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		stopping := ctx.Err() != nil
		wait, idle, err := c.due(stopping)
		switch {
		case err != nil && stopping && err == ErrEnded:
			return nil
		case err != nil:
			return err
		case !idle && wait <= 0:
			if err := c.commit(); err != nil {
				l.broke(err)
				return err
			}
			continue
		}
		var ring <-chan time.Time
		if !idle {
			timer.Reset(wait)
			ring = timer.C
		}
		select {
		case <-ring:
		case <-l.wake:
		case <-ctx.Done():
		}
	}
}

// committer is the state of Run.
type committer struct {
	*Log
	alarm  *time.Timer   // rings when a commit takes too long
	waited time.Duration // for the commit under way, as the alarm counts; guarded by mu
	last   time.Time     // start of the last commit
	taken  []*group
}

// urgency is how soon a commit is wanted. mu is held.
func (l *Log) urgency() urgency {
	u := l.pending.urgency()
	switch {
	case u != urgeNone && l.wanted > l.durable.Load():
		return urgeNow
	case u < urgeFinish && l.forgettable() > l.kept.settled:
		return urgeFinish
	}
	return u
}

// due returns how long the next commit has to wait; idle: until something is
// appended. When stopping, no commit waits, and ErrEnded means that all is done.
func (c *committer) due(stopping bool) (wait time.Duration, idle bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, false, c.err
	}
	u := c.urgency()
	c.told = u
	switch {
	case stopping && u == urgeNone:
		c.err = ErrEnded
		c.release()
		return 0, false, ErrEnded
	case stopping || u == urgeNow:
		return 0, false, nil
	case u == urgeNone:
		return 0, true, nil
	}
	at := c.last.Add(c.cfg.Spacing)
	if u == urgeBegins {
		if linger := c.pending.groups[0].since.Add(c.cfg.Linger); linger.After(at) {
			at = linger
		}
	}
	return time.Until(at), false, nil
}

// forgettable is how far whole groups may be forgotten. mu is held.
func (l *Log) forgettable() uint64 { return l.kept.boundary(l.wish, l.durable.Load()) }

// commit makes the oldest groups durable, and forgets what may be forgotten,
// in one batch.
func (c *committer) commit() error {
	c.mu.Lock()
	gs := c.pending.take(c.taken[:0], int(c.memTable()/4))
	c.taken = gs
	now := time.Now()
	forget := c.forgettable()
	step := c.kept.step(forget, now)
	c.flying, c.waited = now, 0
	if len(gs) > 0 {
		c.oldest = gs[0].since
	}
	c.mu.Unlock()
	c.last = now
	c.alarm.Reset(c.cfg.StallAfter)

	size := 64
	for _, g := range gs {
		size += len(g.b) + 32
	}
	b := c.folder.DB.NewBatchWithSize(size)
	defer b.Close()
	durable := c.durable.Load()
	if err := step.write(b); err != nil {
		return err
	}
	// Forgetting alone need not be durable: what comes back after a crash is
	// settled and forgotten again.
	opts := pebble.NoSync
	for _, g := range gs {
		opts = pebble.Sync
		if err := b.Set(groupKey(g.first), g.seal(kindRecords), nil); err != nil {
			return err
		}
		durable = g.end()
	}
	failpoint.Hit("result-before-commit")
	if err := c.apply(b, opts); err != nil {
		return err
	}
	failpoint.Hit("after-commit")
	if len(gs) > 0 {
		c.folder.SetMark(durable)
		c.synced.Update(time.Since(now).Seconds())
	}
	c.alarm.Stop()

	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range gs {
		c.kept.add(g.first, len(g.b), now)
	}
	c.kept.made(&step)
	c.durable.Store(durable)
	c.pending.release(gs)
	c.flying, c.oldest = time.Time{}, time.Time{}
	c.release()
	return nil
}

// apply commits b. Pebble panics when a write that nobody waited for has failed.
func (c *committer) apply(b *pebble.Batch, opts *pebble.WriteOptions) error {
	defer func() {
		if r := recover(); r != nil {
			c.folder.Fatalf("commit: %v", r)
		}
	}()
	return b.Commit(opts)
}

// stalled runs each time that the alarm rings while a commit is under way. It
// counts rings and not hours: a process that was stopped, or whose machine slept,
// has not given its disk that time, and finds one ring when it goes on.
func (c *committer) stalled() {
	c.mu.Lock()
	if c.flying.IsZero() {
		c.mu.Unlock()
		return
	}
	c.waited += c.cfg.StallAfter
	d := c.waited
	c.mu.Unlock()
	if d >= c.cfg.ExitAfter {
		c.folder.Fatalf("a commit has not ended in %s: the disk of %s stalls", d, c.cfg.Dir)
	}
	c.log.Error("the disk stalls: a commit has not ended", "dir", c.cfg.Dir, "seconds", int(d.Seconds()))
	c.alarm.Reset(c.cfg.StallAfter)
}

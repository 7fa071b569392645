package wal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/wal/disk"
)

// Log is the journal. Its methods may be called by many goroutines, except
// Open, Run, Close and Replay.
type Log struct {
	cfg    Config
	log    *slog.Logger
	folder *disk.Folder // nil before the first Open
	tables uint64       // see memTable
	set    *metrics.Set
	synced *metrics.PrometheusHistogram

	wake    chan struct{} // cap 1: the committer should look again
	durable atomic.Uint64 // positions below it are; written under mu

	mu        sync.Mutex
	pending   pending
	told      urgency       // the urgency that the committer knows of
	wanted    uint64        // somebody waits for the positions below it
	wish      uint64        // the highest Forget so far
	kept      kept          // the committed groups
	committed chan struct{} // closed after the next commit; nil when nobody waits
	flying    time.Time     // start of the commit under way; zero when none is
	oldest    time.Time     // of the records in that commit
	running   bool
	err       error // why there will be no further commit
}

var _ engine.Journal = (*Log)(nil)

// Errors of a Log.
var (
	// ErrStalled: the disk has not taken a commit for too long.
	ErrStalled = errors.New("the journal's disk stalls")
	// ErrEnded: Run has ended, or the journal is closed.
	ErrEnded = errors.New("the journal has ended")
)

// New builds a journal; Open reads it.
func New(cfg Config) *Log {
	cfg.setDefaults()
	l := &Log{
		cfg:  cfg,
		log:  cfg.Logger.With("part", "wal"),
		set:  metrics.NewSet(),
		wake: make(chan struct{}, 1),
	}
	l.register()
	return l
}

// Begin notes that an attempt starts.
func (l *Log) Begin(b engine.Begun) engine.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending.room(begunSize).begin(&b)
	return l.appended()
}

// Finish notes an outcome.
func (l *Log) Finish(task []byte) engine.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending.room(finishedHeader + len(task)).finished(task)
	return l.appended()
}

// appended counts a record, and wakes the committer when it is more urgent than
// what the committer knows of. mu is held.
func (l *Log) appended() engine.Position {
	p := l.pending.next
	l.pending.next++
	l.rouse(l.pending.urgency())
	return engine.Position(p)
}

// rouse wakes the committer when u is more urgent than what it knows of. mu is held.
func (l *Log) rouse(u urgency) {
	if u > l.told {
		l.told = u
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// Sync waits until all before and at p is durable. Run must be under way, or
// begin some time: it is what commits.
func (l *Log) Sync(ctx context.Context, p engine.Position) error {
	for {
		committed, err := l.await(uint64(p))
		if committed == nil {
			return err
		}
		select {
		case <-committed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// await returns what closes with the next commit, or nil when p is durable or
// never will be.
func (l *Log) await(p uint64) (<-chan struct{}, error) {
	if p < l.durable.Load() {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case p < l.durable.Load():
		return nil, nil
	case l.err != nil:
		return nil, l.err
	case p >= l.pending.next:
		return nil, fmt.Errorf("BUG: sync of position %d, which no record has: the next is %d", p, l.pending.next)
	}
	l.wanted = max(l.wanted, p+1)
	if l.committed == nil {
		l.committed = make(chan struct{})
	}
	l.rouse(urgeNow)
	return l.committed, nil
}

// Next is the position that the next record will get.
func (l *Log) Next() engine.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return engine.Position(l.pending.next)
}

// Forget forgets what was appended before p, with the next commit, as far as it
// is durable and fills whole groups; the rest goes with a later one.
func (l *Log) Forget(p engine.Position, w *engine.Watermarks) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	l.wish = max(l.wish, min(uint64(p), l.pending.next))
	l.kept.note(w)
	if l.forgettable() > l.kept.settled {
		l.rouse(urgeFinish)
	}
	return nil
}

// Settled are the watermarks that Forget was told of each shard last; nil: nothing is kept.
func (l *Log) Settled() *engine.Watermarks {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept.w == nil {
		return nil
	}
	w := *l.kept.w
	return &w
}

// Len is the number of records not forgotten, durable or not.
func (l *Log) Len() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(l.pending.next - l.kept.settled)
}

// Unsynced returns how many records are not durable yet, and for how long the
// oldest of them has been waiting. Begin and Finish never wait for the disk, so
// the caller has to stop beginning attempts when this grows.
func (l *Log) Unsynced() (records int64, age time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.oldest.IsZero():
		age = time.Since(l.oldest)
	case len(l.pending.groups) > 0:
		age = time.Since(l.pending.groups[0].since)
	}
	return int64(l.pending.next - l.durable.Load()), age
}

// Err returns why nothing becomes durable: ErrStalled while the disk stalls, the
// reason for good after the disk failed, nil when all is well.
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return l.err
	}
	if l.flying.IsZero() {
		return nil
	}
	if d := time.Since(l.flying); d >= l.cfg.StallAfter {
		return fmt.Errorf("%w: %s has not taken a commit for %s", ErrStalled, l.cfg.Dir, d.Round(time.Second))
	}
	return nil
}

// broke ends the journal: all who wait in Sync get the error.
func (l *Log) broke(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
	l.release()
}

// release wakes all who wait in Sync. mu is held.
func (l *Log) release() {
	if l.committed != nil {
		close(l.committed)
		l.committed = nil
	}
}

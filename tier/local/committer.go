package local

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"xtimer/engine/failpoint"
)

// commitLoop is the committer: the only goroutine that writes to the database.
// It ends when the queue is closed and empty, or the disk failed.
func (s *Store) commitLoop() {
	defer close(s.done)
	g := newGroup(s)
	var ops []*op
	for {
		if ops = s.queue.take(ops); ops == nil {
			return
		}
		g.reset()
		for _, o := range ops {
			o.err = o.judge(g)
		}
		g.judged()
		if err := g.commit(); err != nil {
			// Pebble has no error of a commit that leaves it usable.
			s.folder.Fatalf("a commit failed: %v", err)
		}
		select {
		case <-s.dead:
			return // what was not synced is not acknowledged
		default:
		}
		for i, o := range ops {
			close(o.done)
			ops[i] = nil
		}
	}
}

// maxBatch is the room of a batch that is kept for the next: that of a settle
// after half a second of 60,000 fires each.
const maxBatch = 8 << 20

// commit writes what the group collected, waits for the sync, and shows it to
// readers.
func (g *group) commit() error {
	if g.empty() {
		return nil
	}
	s := g.s
	g.st.stats.seq++
	g.put(statsKey, g.st.stats.encode(nil))
	b := s.db.NewBatch(pebble.WithMaxRetainedSizeBytes(maxBatch))
	for _, r := range g.ranges {
		if err := b.DeleteRange(r.from, r.to, nil); err != nil {
			return err
		}
	}
	for kind := range g.writes {
		if err := fill(b, g.writes[kind]); err != nil {
			return err
		}
	}
	if err := s.db.Apply(b, pebble.Sync); err != nil {
		return err
	}
	if err := b.Close(); err != nil {
		return err
	}
	failpoint.Hit("cold-after-commit")
	s.folder.SetMark(g.st.stats.seq)
	s.views.renew(g.st)
	return nil
}

// fill puts the writes of one kind into the batch in the order of their keys:
// a sorted batch goes into the memtable at a third of the cost. Of two writes
// of one key the later one counts.
func fill(b *pebble.Batch, ws []write) error {
	byKey := func(x, y write) int {
		if c := compare(x.key, y.key); c != 0 {
			return c
		}
		return x.place - y.place
	}
	for i := range ws {
		ws[i].place = i // a stable sort took twice the time of an unstable one with this
	}
	if !slices.IsSortedFunc(ws, byKey) {
		slices.SortFunc(ws, byKey)
	}
	for i := range ws {
		if i%yieldEvery == yieldEvery-1 {
			runtime.Gosched()
		}
		if i+1 < len(ws) && compare(ws[i].key, ws[i+1].key) == 0 {
			continue
		}
		var err error
		if ws[i].val == nil {
			err = b.Delete(ws[i].key, nil)
		} else {
			err = b.Set(ws[i].key, ws[i].val, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// owned copies what a Get gave and lets Pebble's bytes go; nil for none.
func owned(v []byte, closer io.Closer, err error) ([]byte, error) {
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the store: %w", err)
	}
	out := make([]byte, len(v))
	copy(out, v)
	return out, closer.Close()
}

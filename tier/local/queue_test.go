package local

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
)

// TestDeletesByBytes: the definitions that a commit removes are in memory until it is made,
// and what their versions are written from. Many deletes of large timers at once are many
// commits, and those of small ones are one.
func TestDeletesByBytes(t *testing.T) {
	s := New(Config{Dir: "/data/cold", FS: vfs.NewMem(), MemTableBytes: 128 << 20, StallAfter: time.Minute}) // all of it fits in one memtable
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const n = 48
	for _, c := range []struct{ size, least, most int }{{512 << 10, n / 16, n}, {100, 1, 2}} {
		var cs []*engine.Change
		for i := range n {
			x := &engine.Timer{Definition: engine.NewDefinition(), ID: engine.TimerID(c.size + i), Version: 1, Generation: 1}
			x.App, x.Name, x.Schedule.Every = "a", fmt.Sprint("n", c.size, "-", i), time.Second
			x.Callback.Body = bytes.Repeat([]byte{'x'}, c.size)
			if a, err := s.Apply(t.Context(), &engine.Change{Timer: x, ID: x.ID}); err != nil || a.Err != nil {
				t.Fatal(err, a.Err)
			}
			cs = append(cs, &engine.Change{ID: x.ID, Was: 1, Size: x.Payload()})
		}
		before := s.commits(t, cs)
		if made := s.made() - before; made < c.least || made > c.most {
			t.Errorf("deletes of %d bytes each were %d commits, want %d to %d", c.size, made, c.least, c.most)
		}
		if _, err := s.Timer(t.Context(), cs[n-1].ID); err == nil {
			t.Error("it is not deleted")
		}
	}
}

// made is how many commits were made.
func (s *Store) made() int {
	w, err := s.views.acquire()
	if err != nil {
		panic(err)
	}
	defer s.views.release(w)
	return int(w.seq)
}

// commits makes changes, each by a caller of its own, all of which wait for the same commit;
// it returns how many commits were made before.
func (s *Store) commits(t *testing.T, cs []*engine.Change) (before int) {
	t.Helper()
	busy, free := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_ = s.do(t.Context(), 1, func(*group) error {
			close(busy)
			<-free
			return nil
		})
	})
	<-busy
	before = s.made()
	for _, c := range cs {
		all.Go(func() {
			if _, err := s.Apply(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}
	for waiting := 0; waiting < len(cs); {
		s.queue.mu.Lock()
		waiting = len(s.queue.ops)
		s.queue.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	close(free)
	all.Wait()
	return before
}

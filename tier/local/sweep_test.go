package local

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
)

// TestSweepByBytes: creates wait while a commit of a sweep reads definitions, so it reads
// some and leaves the rest to the next one; and with enough of them all are removed.
func TestSweepByBytes(t *testing.T) {
	// All of it fits in one memtable: to merge tables of such rows is most of the work.
	s := New(Config{Dir: "/data/cold", FS: vfs.NewMem(), MemTableBytes: 128 << 20, StallAfter: time.Minute})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const changed, timers, versions = 7, 34, 34
	body := bytes.Repeat([]byte{'x'}, 512<<10)
	apply := func(id engine.TimerID, version uint32) {
		t.Helper()
		x := &engine.Timer{Definition: engine.NewDefinition(), ID: id, Version: version, Generation: 1, Status: engine.Finished}
		x.App, x.Name, x.At, x.Callback.Body = "a", fmt.Sprint("n", id), benchNow+int64(id), body
		x.Schedule.At, x.LastDue, x.UpdatedAt = x.At, x.At, x.At
		if a, err := s.Apply(t.Context(), &engine.Change{Timer: x, ID: id, Was: version - 1}); err != nil || a.Err != nil {
			t.Fatal(err, a.Err)
		}
	}
	for id := range engine.TimerID(timers) {
		apply(id+1, 1)
	}
	for v := range uint32(versions) {
		apply(changed, v+2)
	}
	count := func() (left int, bytes int) {
		t.Helper()
		ls, err := s.Lives(t.Context(), 0, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range ls {
			left, bytes = left+1, bytes+len(l.Versions)*len(body)
		}
		return left, bytes
	}
	rounds := 0
	_, was := count()
	for more := true; more; rounds++ {
		var err error
		if more, err = s.removeFinished(t.Context(), benchNow+day); err != nil {
			t.Fatal(err)
		}
		_, is := count()
		if was-is > 2*sweepBytes {
			t.Errorf("a commit removed %d bytes", was-is)
		}
		was = is
	}
	if left, _ := count(); left > 0 || rounds < 4 {
		t.Errorf("%d timers are left after %d commits", left, rounds)
	}

	for v := range uint32(versions) {
		apply(timers+1, v+1)
	}
	rounds = 0
	for more := true; more; rounds++ {
		var err error
		if more, err = s.forgetVersions(t.Context(), benchNow+day); err != nil {
			t.Fatal(err)
		}
	}
	if _, bytes := count(); bytes != len(body) || rounds < 2 {
		t.Errorf("%d bytes of versions are left after %d commits", bytes, rounds)
	}
}

// TestDeletedRowsAreNotSteppedOver: a look for the rows of a timer, or for its definition, that
// are not there costs the same whatever was deleted behind them, before any compaction.
func TestDeletedRowsAreNotSteppedOver(t *testing.T) {
	s := New(Config{Dir: "/data/cold", FS: vfs.NewMem(), StallAfter: time.Minute})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const n, last = 5000, 6000
	made, gone := &engine.Settlement{Owner: "n"}, &engine.Settlement{Owner: "n"}
	var create, remove []*engine.Change
	for id := engine.TimerID(1); id <= last; id++ {
		k := engine.Key{Timer: id, Due: benchNow}
		made.Owe = append(made.Owe, engine.Owed{Key: k, NotBefore: benchNow})
		x := benchTimer(int(id))
		x.ID = id
		create = append(create, &engine.Change{Timer: x, ID: id})
		if id <= n {
			gone.Pay = append(gone.Pay, k)
			remove = append(remove, &engine.Change{ID: id, Was: x.Version})
		}
	}
	for _, cs := range [][]*engine.Change{create, remove} {
		for _, a := range s.ApplyAll(t.Context(), cs) {
			if a.Err != nil {
				t.Fatal(a.Err)
			}
		}
	}
	for _, st := range []*engine.Settlement{made, gone} {
		if err := s.Settle(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	few := func(of string, it *pebble.Iterator) {
		if steps := it.Stats(); steps.ForwardStepCount[pebble.InternalIterCall] > 100 {
			t.Errorf("the look for %s stepped over %d keys", of, steps.ForwardStepCount[pebble.InternalIterCall])
		}
	}
	g := newGroup(s)
	defer g.judged()
	for id, want := range map[engine.TimerID]bool{1: false, n: false, last: true} {
		if is, err := g.owes(id); is != want || err != nil {
			t.Errorf("timer %d owes: %v, %v", id, is, err)
		}
	}
	few("rows", g.its[kindOwed])
	w, err := s.views.acquire()
	if err != nil {
		t.Fatal(err)
	}
	defer s.views.release(w)
	r, err := w.rows()
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	for id, want := range map[engine.TimerID]bool{1: false, n: false, last: true} {
		if b, err := r.find(id); (b != nil) != want || err != nil {
			t.Errorf("timer %d is there: %v, %v", id, b != nil, err)
		}
	}
	few("definitions", r.it)
}

// TestOwesInAGroup: a timer owes what a group has put and not paid, with what is stored.
func TestOwesInAGroup(t *testing.T) {
	s := New(Config{Dir: "/data/cold", FS: vfs.NewMem(), StallAfter: time.Minute})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	row := func(id engine.TimerID) []engine.Owed {
		return []engine.Owed{{Key: engine.Key{Timer: id, Due: benchNow}, NotBefore: benchNow}}
	}
	if err := s.Settle(t.Context(), &engine.Settlement{Owner: "n", Owe: append(row(1), row(3)...)}); err != nil {
		t.Fatal(err)
	}
	g := newGroup(s)
	defer g.judged()
	owe := func(id engine.TimerID) {
		if err := g.fetchOwed(nil, row(id)); err != nil {
			t.Fatal(err)
		}
		g.owe(row(id))
	}
	pay := func(id engine.TimerID) {
		keys := []engine.Key{row(id)[0].Key}
		if err := g.fetchOwed(keys, nil); err != nil {
			t.Fatal(err)
		}
		g.pay(keys)
	}
	for n, c := range []struct {
		do   func(engine.TimerID)
		id   engine.TimerID
		owes [2]bool // the timers 1 and 2
	}{
		{owe, 2, [2]bool{true, true}},
		{pay, 1, [2]bool{false, true}},
		{pay, 2, [2]bool{false, false}},
		{owe, 1, [2]bool{true, false}},
		{owe, 1, [2]bool{true, false}},
		{pay, 1, [2]bool{false, false}},
	} {
		c.do(c.id)
		for i, want := range c.owes {
			if is, err := g.owes(engine.TimerID(i + 1)); is != want || err != nil {
				t.Errorf("step %d: timer %d owes: %v, %v", n, i+1, is, err)
			}
		}
	}
}

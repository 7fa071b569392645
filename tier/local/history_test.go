package local

import (
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
)

// An entry of the index of failures that does not say whose it is, as they all
// were once, is found by its record.
func TestFailureWithoutItsApp(t *testing.T) {
	s := New(Config{Dir: "/cold", FS: vfs.NewMem(), MemTableBytes: 1 << 20, StallAfter: time.Minute})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var st engine.Settlement
	want := map[string][]int64{}
	for i := range 10 {
		x := &engine.Task{Key: engine.Key{Timer: 1, Due: int64(1000 + i)}, App: []string{"a", "b"}[i%2], Status: engine.Dead}
		st.Tasks = append(st.Tasks, engine.Record{Key: x.Key, Status: x.Status, Encoded: engine.AppendTask(nil, x)})
		want[x.App] = append(want[x.App], x.Key.Due)
	}
	if err := s.Settle(t.Context(), &st); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := s.db.Set(timeKey(nil, kindFailure, int64(1000+i), 1), none, pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Settle(t.Context(), &engine.Settlement{Marks: []engine.Mark{{Shard: 0, W: 1}}}); err != nil {
		t.Fatal(err) // readers see what stands since the last commit
	}
	for app, dues := range want {
		ts, _, err := s.Tasks(t.Context(), engine.TaskFilter{App: app, Statuses: []engine.TaskStatus{engine.Dead}}, engine.Key{}, 100)
		if err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, x := range slices.Backward(ts) {
			got = append(got, x.Key.Due)
		}
		if !slices.Equal(got, dues) {
			t.Errorf("failures of %s: %v, want %v", app, got, dues)
		}
	}
}

// A page of the index of failures reads fewer records than one of history does: each is
// a seek of its own.
func TestFailuresOfAPage(t *testing.T) {
	s := New(Config{Dir: "/cold", FS: vfs.NewMem(), MemTableBytes: 1 << 20, StallAfter: time.Minute})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var st engine.Settlement
	for i := range taskSteps {
		x := &engine.Task{Key: engine.Key{Timer: 1, Due: int64(1000 + i)}, App: "a", Status: engine.Dead}
		st.Tasks = append(st.Tasks, engine.Record{Key: x.Key, Status: x.Status, Encoded: engine.AppendTask(nil, x)})
	}
	if err := s.Settle(t.Context(), &st); err != nil {
		t.Fatal(err)
	}
	f, pages := engine.TaskFilter{Statuses: []engine.TaskStatus{engine.Dead}, Class: "timeout"}, 0
	for next := (engine.Key{}); pages == 0 || next != (engine.Key{}); pages++ {
		ts, before, err := s.Tasks(t.Context(), f, next, 100)
		if err != nil || len(ts) > 0 {
			t.Fatal(len(ts), err)
		}
		next = before
	}
	if pages < seekSteps || pages > seekSteps+1 {
		t.Errorf("%d pages, want %d", pages, seekSteps)
	}
}

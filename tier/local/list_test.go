package local

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
)

// TestListPagesByBytes: a page of large timers fits into memory, whatever its limit.
func TestListPagesByBytes(t *testing.T) {
	s := New(Config{Dir: "/data/cold", FS: vfs.NewMem(), MemTableBytes: 64 << 20, StallAfter: time.Minute})
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const n = 48
	for i := range n {
		x := &engine.Timer{Definition: engine.NewDefinition(), ID: engine.TimerID(i + 1), Version: 1, Generation: 1, At: 1 << 40, LastDue: 1 << 40}
		x.App, x.Name, x.Schedule.At, x.Callback.URL = "app", fmt.Sprint(i), 1<<40, "http://127.0.0.1:9/"
		x.Callback.Body, x.Callback.HasBody = bytes.Repeat([]byte{'x'}, 500<<10), true
		if _, err := s.Apply(t.Context(), &engine.Change{Timer: x, ID: x.ID}); err != nil {
			t.Fatal(err)
		}
	}
	told := 0
	for next := ""; told == 0 || next != ""; {
		ts, cursor, err := s.Timers(t.Context(), engine.TimerFilter{}, next, 1000)
		if err != nil || len(ts) == 0 {
			t.Fatal(len(ts), err)
		}
		size := 0
		for _, x := range ts {
			size += len(x.Callback.Body)
		}
		if size > 17<<20 {
			t.Errorf("%d timers of %d bytes", len(ts), size)
		}
		told, next = told+len(ts), cursor
	}
	if told != n {
		t.Errorf("%d of %d", told, n)
	}
}

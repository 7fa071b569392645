package limit

import (
	"log/slog"
	"reflect"
	"testing"
	"time"

	"xtimer/engine/flow"
	"xtimer/engine/object"
	"xtimer/tier/memory"
)

// What is kept of a key is there after a start, and goes a day after its last call.
func TestCallsAreKept(t *testing.T) {
	now, cold := time.UnixMilli(1_800_000_000_000), memory.NewCold()
	open := func() *Calls {
		t.Helper()
		set := object.New(cold, func() time.Time { return now }, slog.New(slog.DiscardHandler))
		c := NewCalls(set, func() time.Time { return now })
		if err := set.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		return c
	}
	key := flow.Name{Kind: flow.OfFlow, App: "a", Key: "user-1"}
	target := flow.Name{Kind: flow.OfTarget, Key: "http://[::1]:80"}
	want := map[flow.Name]flow.Kept{
		key:    {Rate: 1, Per: time.Hour, Burst: 1, Due: 5},
		target: {Rate: 9, Per: time.Hour, Burst: 9, Due: 6, Calls: [][2]int64{{4, 2}, {5, 1}}},
	}
	c := open()
	if _, is := c.Load(key); is {
		t.Error("something is kept of a new key")
	}
	if err := c.Save(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	c = open()
	for n, k := range want {
		if got, is := c.Load(n); !is || !reflect.DeepEqual(got, k) {
			t.Errorf("%+v is kept of %v, want %+v", got, n, k)
		}
	}
	now = now.Add(longestPer + 2*time.Hour)
	if err := c.Save(t.Context(), map[flow.Name]flow.Kept{key: {Rate: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, is := c.Load(target); is {
		t.Error("what counts no more is kept")
	}
	if got, is := c.Load(key); !is || got.Rate != 1 {
		t.Errorf("%+v", got)
	}
}

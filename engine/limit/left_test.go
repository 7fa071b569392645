package limit

import (
	"log/slog"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/object"
	"xtimer/tier/memory"
)

// What a deleted key leaves behind goes when another of its app is deleted a week later; a backlog
// that is older leaves nothing.
func TestWhatIsLeftBehindGoes(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	set := object.New(memory.NewCold(), func() time.Time { return now }, slog.New(slog.DiscardHandler))
	if err := set.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	remove := func(name string, skipped time.Time) {
		x := Object{SkippedTo: skipped.UnixMilli()}
		k := FlowKey("a", name)
		if _, _, err := set.Put(t.Context(), k, x.Body(), nil); err != nil {
			t.Fatal(err)
		}
		if err := Delete(t.Context(), set, k, func(*engine.Object) error { return nil }, now.UnixMilli()); err != nil || set.Get(k) != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	left := func(want ...string) {
		t.Helper()
		list := set.List(FlowKind+leftBehind, "a")
		for i := range list {
			if len(list) != len(want) || list[i].Name != want[i] {
				t.Errorf("%s is left, want %v", list[i].Name, want)
			}
		}
		if len(list) != len(want) {
			t.Errorf("%d are left, want %v", len(list), want)
		}
	}
	remove("k", now)
	remove("l", now)
	remove("old", now.Add(-leftFor))
	left("k", "l")
	now = now.Add(leftFor + time.Second)
	remove("m", now)
	left("m")
}

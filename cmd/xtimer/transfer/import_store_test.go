package transfer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
)

// TestImportDecidesAsAStart: what an import finds unfinished is missed when it is older
// than the misfire window, and called when it is late by ten seconds at most.
func TestImportDecidesAsAStart(t *testing.T) {
	const now = int64(1_800_000_000_000)
	d := engine.NewDefinition()
	d.Schedule.Every, d.Misfire = time.Second, engine.Misfire{Policy: engine.MisfireSkip, Window: time.Minute}
	k := &engine.Timer{Definition: d, ID: 4711 << 30, Version: 1, Generation: 1, CreatedAt: now - 200_000}
	if err := plan.Resolve(k, nil, now-200_000); err != nil {
		t.Fatal(err)
	}
	c := &engine.Change{Timer: k}
	if err := decide(c, now-100_000, now+3000, now); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range c.Tasks {
		got = append(got, fmt.Sprint(r.Key.Due-now, " to ", r.DueLast-now, " ×", r.Count, " ", r.Status, " ", r.Reason))
	}
	want := []string{"-99000 to -61000 ×39 missed misfire_window", "-60000 to -11000 ×50 skipped misfire"}
	if !slices.Equal(got, want) {
		t.Errorf("recorded:\n got %q\nwant %q", got, want)
	}
	for i, o := range c.Owe {
		if due := now - 10_000 + int64(i)*1000; o.Key.Due != due || o.NotBefore != due || o.To != 0 {
			t.Errorf("row %d is %+v", i, o)
		}
	}
	if len(c.Owe) != 14 {
		t.Errorf("%d rows, want 14", len(c.Owe))
	}
}

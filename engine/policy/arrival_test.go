package policy

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
)

// TestArrivalDecidesAsAStart: what was not finished where a timer comes from is missed when it is older
// than the misfire window, and called when it is late by ten seconds at most.
func TestArrivalDecidesAsAStart(t *testing.T) {
	const now = int64(1_800_000_000_000)
	d := engine.NewDefinition()
	d.Schedule.Every, d.Misfire = time.Second, engine.Misfire{Policy: engine.MisfireSkip, Window: time.Minute}
	k := &engine.Timer{Definition: d, ID: 4711 << 30, Version: 1, Generation: 1, CreatedAt: now - 200_000}
	if err := plan.Resolve(k, nil, now-200_000); err != nil {
		t.Fatal(err)
	}
	c := &engine.Change{Timer: k}
	if err := (Arrival{FinishedTo: now - 100_000, Watermark: now + 3000, Now: now}).Fit(c); err != nil {
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
	got = nil
	for _, o := range c.Owe {
		got = append(got, fmt.Sprint(o.Key.Due-now, " to ", o.To-now, ", not before ", o.NotBefore-now))
	}
	want = []string{"-10000 to 0, not before -10000", "1000 to 3000, not before 1000"}
	if !slices.Equal(got, want) {
		t.Errorf("owed:\n got %q\nwant %q", got, want)
	}
}

// TestArrivalOfFinishedDues: what was finished where a timer comes from is neither called
// nor recorded, and is told to be finished there.
func TestArrivalOfFinishedDues(t *testing.T) {
	const now = int64(1_800_000_000_000)
	d := engine.NewDefinition()
	d.Schedule.Every = time.Second
	k, err := plan.NewTimer(&d, 4711<<30, now-200_000)
	if err != nil {
		t.Fatal(err)
	}
	a := Arrival{FinishedTo: now - 1500, Watermark: now - 100_000, Now: now}
	c := &engine.Change{Timer: k}
	if err := a.Fit(c); err != nil || len(c.Owe)+len(c.Tasks) > 0 || k.ValidFrom != a.FinishedTo {
		t.Errorf("owes %d, records %d, valid from %d, %v", len(c.Owe), len(c.Tasks), k.ValidFrom-now, err)
	}
	k.ValidFrom = now - 200_000 // as one whose shard has the same watermark
	first, last, ok, err := a.Finished(k, now-60_500)
	if err != nil || !ok || first != now-60_000 || last != now-2000 {
		t.Errorf("finished are %d to %d, %t, %v", first-now, last-now, ok, err)
	}
}

// TestArrivalOfANewTimer: the instant of a new one-shot is called although it is past; a
// disabled timer owes nothing.
func TestArrivalOfANewTimer(t *testing.T) {
	const now = int64(1_800_000_000_000)
	d := engine.NewDefinition()
	d.Schedule.At = now - 10*time.Hour.Milliseconds()
	for _, disabled := range []bool{false, true} {
		k, err := plan.NewTimer(&d, 4711<<30, now)
		if err != nil {
			t.Fatal(err)
		}
		want := []engine.Owed{Row(k, d.Schedule.At)}
		if disabled {
			Disable(k, "", now, 0)
			want = nil
		}
		c := &engine.Change{Timer: k}
		if err := (Arrival{Watermark: now - 5000, Now: now}).Fit(c); err != nil || !reflect.DeepEqual(c.Owe, want) || len(c.Tasks) > 0 {
			t.Errorf("disabled %t: owes %+v, records %d, %v", disabled, c.Owe, len(c.Tasks), err)
		}
	}
}

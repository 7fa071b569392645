package policy

import (
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
)

// A record of many dues covers none that has a record of its own, and each due
// that is not finished is decided once.
func TestRunsLeaveOutWhatIsFinished(t *testing.T) {
	d := engine.NewDefinition()
	d.Schedule.Every = time.Minute
	timer := &engine.Timer{Definition: d, ID: 1, Generation: 1}
	for _, policy := range []engine.MisfirePolicy{engine.MisfireLatest, engine.MisfireSkip, engine.MisfireAll} {
		timer.Misfire = engine.Misfire{Policy: policy, Window: time.Hour}
		p, err := plan.Of(timer)
		if err != nil {
			t.Fatal(err)
		}
		for mask := range 1 << 8 {
			isFinished := func(due int64) bool { return mask>>(due/minute-1)&1 != 0 }
			tr := Triage{Now: 8*minute + MisfireAfter + 1}
			tr.Decide(timer, &p, 0, isFinished)
			seen := map[int64]int{}
			for _, r := range tr.Records {
				n := int64(0)
				for due := r.Key.Due; due <= r.DueLast; due += minute {
					seen[due]++
					n++
				}
				if n != r.Count {
					t.Fatalf("%v %08b: the record of %d to %d counts %d", policy, mask, r.Key.Due, r.DueLast, r.Count)
				}
			}
			for _, o := range tr.Owe {
				seen[o.Key.Due]++
			}
			for due := minute; due <= 8*minute; due += minute {
				if want := map[bool]int{false: 1}[isFinished(due)]; seen[due] != want {
					t.Fatalf("%v %08b: due %d was decided %d times, want %d", policy, mask, due, seen[due], want)
				}
			}
		}
	}
}

const minute = int64(60_000)

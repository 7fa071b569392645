package verify

import (
	"testing"
	"time"

	"xtimer/engine"
)

// TestManyPending: of a timer whose target has been away for a day each due is owed. What
// that costs grows with the dues, not with dues times rows.
func TestManyPending(t *testing.T) {
	const n, every = int64(400_000), int64(100)
	const from int64 = 1_763_640_000_000
	tm := &engine.Timer{Definition: engine.NewDefinition(), ID: 7, Version: 1, Generation: 1, ValidFrom: from - 1, Anchor: from - every}
	tm.Schedule.Every = time.Duration(every) * time.Millisecond
	ev := evidence{from: from, to: from + n*every, w: from + n*every, now: from + n*every}
	for i := range n {
		ev.owed = append(ev.owed, debt{7, from + i*every, from + i*every, true})
	}
	began := time.Now()
	j := ev.hold(&engine.Life{ID: 7, Versions: []*engine.Timer{tm}})
	if j.open != n || len(j.findings) > 0 {
		t.Errorf("%d of %d are open, %d findings", j.open, n, len(j.findings))
	}
	if took := time.Since(began); took > 20*time.Second { // in proportion: half a second
		t.Errorf("it took %v", took)
	}
}

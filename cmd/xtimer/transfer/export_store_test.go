package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// hiding is a store with a timer that cannot be read: its list leaves the timer out.
type hiding struct {
	*memory.Cold
	id engine.TimerID
}

func (h hiding) Timers(ctx context.Context, f engine.TimerFilter, after string, limit int) ([]*engine.Timer, string, error) {
	ts, next, err := h.Cold.Timers(ctx, f, after, limit)
	kept := ts[:0]
	for _, t := range ts {
		if t.ID != h.id {
			kept = append(kept, t)
		}
	}
	return kept, next, err
}

// TestExportOfADamagedTimer: an export of all timers that has not all of them fails, with
// the others written.
func TestExportOfADamagedTimer(t *testing.T) {
	cold := memory.NewCold()
	for _, id := range []engine.TimerID{1, 2, 3} {
		d := engine.NewDefinition()
		d.App, d.Name, d.Schedule.Cron = "a", "n"+id.String(), "* * * * *"
		x := &engine.Timer{Definition: d, ID: id, Version: 1, Generation: 1}
		if a, err := cold.Apply(t.Context(), &engine.Change{Timer: x, ID: id}); err != nil || a.Err != nil {
			t.Fatal(err, a.Err)
		}
	}
	var out bytes.Buffer
	e := export{lines: json.NewEncoder(&out)}
	if err := e.storedTimers(t.Context(), hiding{cold, 4}); err != nil || e.timers != 3 {
		t.Errorf("%d timers are exported, %v", e.timers, err)
	}
	e = export{lines: json.NewEncoder(&out)}
	err := e.storedTimers(t.Context(), hiding{cold, 2})
	if err == nil || !strings.Contains(err.Error(), "1 of 3 timers are damaged") || e.timers != 2 {
		t.Errorf("%d timers are exported, %v", e.timers, err)
	}
}

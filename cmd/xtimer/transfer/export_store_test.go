package transfer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// hiding is a store with a timer that cannot be read. Its list leaves the timer out.
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

func (h hiding) Timer(ctx context.Context, id engine.TimerID) (*engine.Timer, error) {
	if id == h.id {
		return nil, &engine.Damage{Row: "a row", Err: errors.New("it is cut")}
	}
	return h.Cold.Timer(ctx, id)
}

// TestExportOfADamagedTimer: an export of all timers that has not all of them fails, with
// the others and the history written, also if tasks of the damaged timer are unfinished.
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
	k := engine.Key{Timer: 2, Due: 60_000}
	err := cold.Settle(t.Context(), &engine.Settlement{
		Owe:   []engine.Owed{{Key: k, Generation: 1, NotBefore: k.Due}},
		Tasks: []engine.Record{{Key: k, Status: engine.Retrying, Encoded: engine.EncodeTask(&engine.Task{Key: k, Status: engine.Retrying})}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	e := export{lines: json.NewEncoder(&out), history: true}
	if err := e.storedLines(t.Context(), hiding{cold, 4}, engine.TimerFilter{}); err != nil || e.timers != 3 || e.records != 1 {
		t.Errorf("%d timers and %d records are exported, %v", e.timers, e.records, err)
	}
	e = export{lines: json.NewEncoder(&out), history: true}
	err = e.storedLines(t.Context(), hiding{cold, 2}, engine.TimerFilter{})
	if err == nil || !strings.Contains(err.Error(), "1 of 3 timers are damaged") || e.timers != 2 || e.records != 1 {
		t.Errorf("%d timers and %d records are exported, %v", e.timers, e.records, err)
	}
}

// cutting is a store with a pending task that cannot be read.
type cutting struct {
	*memory.Cold
	key engine.Key
}

func (c cutting) OwedPage(ctx context.Context, id engine.TimerID, after int64, limit int) ([]engine.Owed, error) {
	os, err := c.Cold.OwedPage(ctx, id, after, limit)
	for i := range os {
		if os[i].Key == c.key {
			os[i] = engine.ReadOwed(c.key, nil)
		}
	}
	return os, err
}

// TestExportOfADamagedTask: an export that leaves a pending task out fails, with all others
// and the history written.
func TestExportOfADamagedTask(t *testing.T) {
	cold := memory.NewCold()
	st := &engine.Settlement{}
	for _, id := range []engine.TimerID{1, 2} {
		d := engine.NewDefinition()
		d.App, d.Name, d.Schedule.Cron = "a", "n"+id.String(), "* * * * *"
		x := &engine.Timer{Definition: d, ID: id, Version: 1, Generation: 1}
		if a, err := cold.Apply(t.Context(), &engine.Change{Timer: x, ID: id}); err != nil || a.Err != nil {
			t.Fatal(err, a.Err)
		}
		k := engine.Key{Timer: id, Due: 60_000}
		st.Owe = append(st.Owe, engine.Owed{Key: k, Generation: 1, NotBefore: k.Due})
		st.Tasks = append(st.Tasks, engine.Record{Key: k, Status: engine.Retrying, Encoded: engine.EncodeTask(&engine.Task{Key: k, Status: engine.Retrying})})
	}
	if err := cold.Settle(t.Context(), st); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	e := export{lines: json.NewEncoder(&out), history: true}
	err := e.storedLines(t.Context(), cutting{cold, st.Owe[0].Key}, engine.TimerFilter{})
	if err == nil || !strings.Contains(err.Error(), "1 pending tasks are damaged") || e.timers != 2 || e.owed != 1 || e.records != 2 {
		t.Errorf("%d timers, %d pending tasks and %d records are exported, %v", e.timers, e.owed, e.records, err)
	}
}

package resident

import (
	"fmt"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
)

// A row of a timer whose tasks are queued does not come into memory before an earlier one: neither while that waits
// for a change or a decision, nor after it has joined the rows that refill reads again. Nor does a due become a task.
func TestRowsKeepTheirOrder(t *testing.T) {
	now := int64(100_000)
	cfg := quietConfig(&now)
	cfg.MaxWaiting = 100
	m := New(cfg)
	def := func(id engine.TimerID, o engine.Overlap) *engine.Timer {
		d := &engine.Timer{Definition: engine.NewDefinition(), ID: id, Version: 1, Generation: 1, Anchor: 1000, ValidFrom: 1}
		d.Schedule.Every, d.Callback.URL, d.Overlap = time.Second, "http://127.0.0.1:9/", o
		return d
	}
	queued, other := def(1, engine.OverlapQueue), def(2, engine.OverlapSkip)
	row := func(d *engine.Timer, due int64) engine.Owed {
		return engine.Owed{Key: engine.Key{Timer: d.ID, Due: due}, Generation: 1, NotBefore: due, Lane: d.Lane()}
	}
	tried := func(o *engine.Owed) {
		o.NotBefore, o.Task = now+5000, &engine.Task{Key: o.Key, Attempts: []engine.Attempt{{N: 1}}}
	}
	add := func(d *engine.Timer, due int64, byLane bool, begun func(*engine.Owed), want RowFate) {
		t.Helper()
		o := row(d, due)
		if begun != nil {
			begun(&o)
		}
		read := m.Reads.Begin()
		defer read.End()
		if fate, _, _, err := m.AddRow(&Row{Owed: o, Timer: d, Read: read, ByLane: byLane}, now); fate != want || err != nil {
			t.Fatalf("the row of %d: %v, %v, want %v", due, fate, err, want)
		}
	}
	falls := func(want bool) {
		t.Helper()
		for _, d := range []*engine.Timer{queued, other} {
			sh := m.shardOf(d.ID)
			if falls := sh.fallsBehind(sh.timers[d.ID], now, now); falls != (want && d == queued) {
				t.Errorf("timer %d falls behind: %v, while rows are set aside: %v", d.ID, falls, want)
			}
		}
	}
	add(queued, 4000, true, nil, RowKept)
	add(other, 7000, true, nil, RowKept)
	falls(false)
	end := m.SetAside([]engine.Owed{row(queued, 5000), row(queued, 6000), row(queued, 7000), row(other, 5000)})
	falls(true)
	add(queued, 8000, true, nil, RowChanging)
	add(queued, 9000, true, func(o *engine.Owed) { o.Begun = true }, RowKept) // its timer is busy with it
	add(queued, 10_000, true, tried, RowKept)
	add(other, 8000, true, nil, RowKept)

	later := row(queued, 20_000)
	m.Lanes.Of(queued.Lane()).Waits(later.Place()) // rows wait: what is not read by refill does too
	add(queued, 5000, false, nil, RowWaits)
	add(queued, 6000, false, nil, RowWaits)
	add(queued, 8000, true, nil, RowChanging)
	end() // the row of 7000 is gone
	add(queued, 8000, true, nil, RowWaits)
	add(queued, 11_000, true, tried, RowKept)
	if at := m.Lanes.Of(queued.Lane()).lowest; at.Key.Due >= 5000 {
		t.Errorf("refill is to read from %d on", at.Key.Due)
	}
	add(other, 9000, true, nil, RowKept)
	m.Lanes.Of(queued.Lane()).lowest = lastPlace // refill reads
	for due := int64(5000); due <= 8000; due += 1000 {
		add(queued, due, true, nil, RowKept)
	}
}

// A row is on its way to memory since before the keys of its lane were known: later ones of a key that keeps order wait
// for the row, also where many other lanes have come since.
func TestExpectedBeforeTheKeysAreKnown(t *testing.T) {
	now := int64(100_000)
	m := New(quietConfig(&now))
	defer m.Queue.Close()
	m.Queue.Halt()
	m.Queue.SetRule(flow.Name{Kind: flow.OfFlow, App: "app", Key: "k"}, &flow.Rule{Started: true, Limit: &flow.Limit{Concurrency: 1, HoldTask: true}})
	def := everySecond()
	def.App, def.Flow = "app", engine.FlowOf([]string{"k"})
	row := func(due int64) engine.Owed {
		return engine.Owed{Key: engine.Key{Timer: def.ID, Due: due}, Generation: 1, NotBefore: due, Lane: def.Lane()}
	}
	first, late := row(1000), row(3000)
	come, other := m.Expect(nil, &first), m.Expect(nil, &late)
	other()
	for i := range fewLanes {
		o := *def
		o.App = fmt.Sprint("other", i)
		m.Lanes.Of(o.Lane())
	}
	sh := m.lock(def.ID)
	task, err := m.addRow(sh, def, row(2000), nil, now)
	sh.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	m.Enqueue([]*Task{task})
	q := m.Lanes.Of(def.Lane()).queueLane()
	if !m.Queue.Lacks(q) {
		t.Error("a later row goes first")
	}
	come()
	if m.Queue.Lacks(q) {
		t.Error("the lane waits for a row that has come")
	}
}

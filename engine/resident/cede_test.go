package resident

import (
	"errors"
	"testing"
	"time"

	"xtimer/engine"
)

// From Cede on nothing begins in a shard: no attempt, no first byte, no change, no create. It
// waits for the change that is under way, and for the watermark to pass what began. When it
// has left, what still runs there changes nothing, and nothing comes into memory until the
// shard is gained; what was read before that is out of date.
func TestCede(t *testing.T) {
	now := int64(10_000)
	m := New(quietConfig(&now))
	sh, lv := joined(t, m, everySecond())
	def, shard := lv.def, lv.def.ID.Shard()
	of := engine.SetOf(shard)
	begin := func(due int64) (*Task, *Attempt) {
		tk := sh.take(lv, due, now)
		a, _, _ := m.Begin(tk, now, &Body{})
		return tk, a
	}
	called, flies := begin(2000)
	if !flies.Enter() {
		t.Fatal("the call is not sent")
	}
	flies.Leave(true)
	unsent, dials := begin(3000)
	waits := sh.take(lv, 4000, now)
	release, err := m.Claim(t.Context(), def.ID)
	if err != nil {
		t.Fatal(err)
	}

	m.Cede(of)
	if dials.Enter() || unsent.state != Queued {
		t.Errorf("a call is sent that had not been: its task is %v", unsent.state)
	}
	if a, _, _ := m.Begin(waits, now, &Body{}); a != nil {
		t.Error("an attempt begins")
	}
	if _, err := m.Claim(t.Context(), def.ID); !errors.Is(err, engine.ErrElsewhere) {
		t.Errorf("a change is taken: %v", err)
	}
	if _, ok := m.ClaimNew([]*engine.Change{{ID: def.ID}}); ok {
		t.Error("a timer is created")
	}
	if _, change := m.TryClaimRows(def.ID); change == nil {
		t.Error("rows are changed")
	}
	s := &engine.Settlement{}
	m.Pins.Lowest(9000)
	if _, ok := m.CaptureLast(shard, 9000, now, true, s); ok {
		t.Error("the shard is closed while a change is under way")
	}
	release()
	if _, ok := m.CaptureLast(shard, 1500, now, false, s); ok {
		t.Error("the shard is closed before the watermark may pass what began")
	}
	sh.leaps = sh.leaps.add(8500, 9500) // one record has dues from 8501 to 9500
	read := m.Reads.Begin()
	c, ok := m.CaptureLast(shard, 9000, now, false, s)
	if !ok || len(s.Marks) != 1 || s.Marks[0].W != 8500 {
		t.Fatalf("closed %v, with the marks %v; the watermark may be 8500", ok, s.Marks)
	}
	rows := map[int64]engine.Owed{}
	for _, o := range s.Owe {
		rows[o.Key.Due] = o
	}
	later := now + def.Callback.Timeout.Milliseconds() + 1000
	if o := rows[2000]; !o.Begun || o.NotBefore != later {
		t.Errorf("the row of the call that runs: %+v, not before %d", o, later)
	}
	if rows[3000].Begun || rows[4000].Begun || rows[3000].NotBefore != 3000 || len(rows) != 3 {
		t.Errorf("rows %+v", rows)
	}
	m.Release(&c, 0)
	if clean, _ := m.Leave(of); clean != (engine.Set{}) {
		t.Error("the shard is not clean")
	}
	if e := flies.End(time.UnixMilli(now), engine.Outcome{Class: engine.ClassOK}); e.Counts || called.state != Gone || m.Lanes.Resident.Load() != 0 || len(sh.timers) != 0 {
		t.Errorf("the end of the call counts: %v; its task is %v, and %d tasks and %d timers are left", e.Counts, called.state, m.Lanes.Resident.Load(), len(sh.timers))
	}
	load := func() bool {
		if _, _, err := m.Load(def.ID, def, 0, false, read); err != nil {
			t.Fatal(err)
		}
		row := Row{Owed: rows[4000], Timer: def, Read: read}
		row.Generation = 1
		fate, _, _, err := m.AddRow(&row, now)
		if err != nil {
			t.Fatal(err)
		}
		return fate == RowOutdated
	}
	if load() || len(sh.timers) != 0 {
		t.Error("a shard that has left comes back into memory")
	}
	m.Own(shard, engine.Shard{Watermark: 9000, Fence: 2})
	if !load() || len(sh.timers) != 0 {
		t.Error("what was read of the former stay comes into memory")
	}
	read.End()
	if m.Owned().Has(shard) || m.Held().Has(shard) {
		t.Error("the shard is owned before it is gained")
	}
	m.Gain(of)
	if release, err := m.Claim(t.Context(), def.ID); err != nil {
		t.Error(err)
	} else {
		release()
	}
}

// A shard is not closed between a step of the clock and the decisions about the dues that the step made late:
// the next owner would take them for held.
func TestCedeDuringAStep(t *testing.T) {
	now := int64(10_000)
	m := New(quietConfig(&now))
	m.Cede(engine.SetOf(1))
	judge := m.Step(now, now+20_000)
	if _, ok := m.CaptureLast(1, now, now, true, &engine.Settlement{}); ok {
		t.Error("the shard is closed during a step")
	}
	judge(t.Context())
	if _, ok := m.CaptureLast(1, now, now, true, &engine.Settlement{}); !ok {
		t.Error("the shard is not closed after the step")
	}
}

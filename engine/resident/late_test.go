package resident

import (
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/policy"
)

// A step forward makes dues of a range late that reaches up to the watermark, and the dues after
// it. They get records of their own: a start reads no record whose first due the watermark has
// passed.
func TestNoRecordOnBothSidesOfTheWatermark(t *testing.T) {
	x := newSharing(t)
	def := *x.timer
	def.ID, def.Misfire = 1025, engine.Misfire{Policy: engine.MisfireSkip, Window: time.Hour}
	sh := x.lock(def.ID)
	sh.watermark = 100_000
	x.now = 10_000 // the clock was set back
	if _, err := x.addRow(sh, &def, engine.Owed{Key: engine.Key{Timer: def.ID, Due: 19_999}, To: 100_000, Generation: 1, NotBefore: 20_000, Lane: def.Lane()}, nil, x.now); err != nil {
		t.Fatal(err)
	}
	lv := sh.timers[def.ID]
	x.now = 200_000
	x.addLate(lv, LateTimer{due: 20_000, at: x.now})
	sh.mu.Unlock()
	d, _ := x.Decide(x.Late.Take(), 1000)
	var before, behind int64
	for _, r := range d.Records {
		switch {
		case r.DueLast <= 100_000:
			before += r.Count
		case r.Key.Due > 100_000:
			behind += r.Count
		default:
			t.Errorf("a record of %d to %d", r.Key.Due, r.DueLast)
		}
	}
	if before == 0 || behind == 0 {
		t.Errorf("%d dues up to the watermark are recorded, and %d later ones", before, behind)
	}
	d.Stored()
	d.Done()
	if w := sh.leaps.before(150_000); w != 100_000 {
		t.Errorf("the watermark stands at %d within the dues that are recorded", w)
	}
}

// What is left of a range, where its timer falls behind, does not begin with a spent due: that may have
// a row, and one key has one row.
func TestRangeBeginsBehindSpentDues(t *testing.T) {
	x := newSharing(t)
	def := *x.timer
	def.ID = 1025
	sh := x.lock(def.ID)
	sh.watermark = 100_000
	x.now = 10_000 // the clock was set back
	o := engine.Owed{Key: engine.Key{Timer: def.ID, Due: 19_999}, To: 100_000, Generation: 1, NotBefore: 20_000, Lane: def.Lane()}
	if _, err := x.addRow(sh, &def, o, policy.Spans{{15_000, 42_000}}, x.now); err != nil {
		t.Fatal(err)
	}
	lv := sh.timers[def.ID]
	x.now = 30_000
	x.addLate(lv, LateTimer{due: 30_000, at: x.now, behind: true})
	sh.mu.Unlock()
	d, _ := x.Decide(x.Late.Take(), 1000)
	if want, _ := lv.plan.Next(42_000); len(d.Owe) != 1 || d.Owe[0].Key.Due != want || d.Owe[0].To != engine.Endless {
		t.Errorf("the rows are %+v, want one range from %d on", d.Owe, want)
	}
}

// A range that the wheel goes through is decided when its tasks in memory have rows of their own, or are
// stored: its row goes with the decision.
func TestRangeIsDecidedBehindItsTasks(t *testing.T) {
	x := newSharing(t)
	def := *x.timer
	def.ID = 1025
	sh := x.lock(def.ID)
	sh.watermark = 100_000
	x.now = 10_000 // the clock was set back
	o := engine.Owed{Key: engine.Key{Timer: def.ID, Due: 19_999}, To: 100_000, Generation: 1, NotBefore: 20_000, Lane: def.Lane()}
	if _, err := x.addRow(sh, &def, o, nil, x.now); err != nil {
		t.Fatal(err)
	}
	lv := sh.timers[def.ID]
	x.now = 20_000
	task := sh.take(lv, 20_000, x.now)
	x.addLate(lv, LateTimer{due: 21_000, at: 21_000, behind: true})
	sh.mu.Unlock()
	d, _ := x.Decide(x.Late.Take(), 1000)
	if !d.IsEmpty() || len(d.Pay) > 0 {
		t.Errorf("decided: the row of the range goes (%v), which the task has no other than", d.Pay)
	}
	task.row = rowCurrent
	if d, _ = x.Decide(d.Done(), 1000); len(d.Pay) != 1 || len(d.Owe) != 1 {
		t.Errorf("not decided: pays %v, owes %v", d.Pay, d.Owe)
	}
}

// Of several ranges ahead of the clock, the wheel goes through the earliest, whichever comes first; the
// others are left to refill.
func TestWheelGoesThroughTheEarliestRange(t *testing.T) {
	for _, first := range []int64{20_000, 50_000} {
		x := newSharing(t)
		def := *x.timer
		def.ID = 1025
		sh := x.lock(def.ID)
		sh.watermark = 100_000
		x.now = 10_000 // the clock was set back
		for _, from := range []int64{first, 70_000 - first} {
			o := engine.Owed{Key: engine.Key{Timer: def.ID, Due: from - 1}, To: from + 20_000, Generation: 1, NotBefore: from, Lane: def.Lane()}
			if _, err := x.addRow(sh, &def, o, nil, x.now); err != nil {
				t.Fatal(err)
			}
		}
		lv := sh.timers[def.ID]
		sh.mu.Unlock()
		early, late := engine.Key{Timer: def.ID, Due: 19_999}, engine.Key{Timer: def.ID, Due: 49_999}
		if lv.rangeFrom != early.Due || lv.next != 20_000 || !lv.laneMemory.spilled.Load() || x.Turns(early) || !x.Turns(late) {
			t.Errorf("the wheel goes from %d on, refill reads: %v", lv.rangeFrom, lv.laneMemory.spilled.Load())
		}
	}
}

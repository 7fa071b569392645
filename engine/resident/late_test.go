package resident

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
)

// ahead is a memory with a timer in a shard whose watermark is at 100 s, while the clock was set back to 10 s.
// The lock of the shard is held.
type ahead struct {
	*sharing
	def engine.Timer
	sh  *shard
}

func newAhead(t *testing.T) *ahead {
	x := &ahead{sharing: newSharing(t)}
	x.def = *x.timer
	x.def.ID = 1025
	x.sh = x.lock(x.def.ID)
	x.sh.watermark, x.now = 100_000, 10_000
	return x
}

// owe adds a range of the dues from one to another, and returns the timer.
func (x *ahead) owe(t *testing.T, from, to int64, spent policy.Spans) *Timer {
	t.Helper()
	o := engine.Owed{Key: engine.Key{Timer: x.def.ID, Due: from - 1}, To: to, Generation: 1, NotBefore: from, Lane: x.def.Lane()}
	if _, err := x.addRow(x.sh, &x.def, o, spent, x.now); err != nil {
		t.Fatal(err)
	}
	return x.sh.timers[x.def.ID]
}

// A step forward makes dues of a range late that reaches up to the watermark, and the dues after
// it. They get records of their own: a start reads no record whose first due the watermark has
// passed.
func TestNoRecordOnBothSidesOfTheWatermark(t *testing.T) {
	x := newAhead(t)
	sh := x.sh
	x.def.Misfire = engine.Misfire{Policy: engine.MisfireSkip, Window: time.Hour}
	lv := x.owe(t, 20_000, 100_000, nil)
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
	x := newAhead(t)
	lv := x.owe(t, 20_000, 100_000, policy.Spans{{15_000, 42_000}})
	x.now = 30_000
	x.addLate(lv, LateTimer{due: 30_000, at: x.now, behind: true})
	x.sh.mu.Unlock()
	d, _ := x.Decide(x.Late.Take(), 1000)
	if want, _ := lv.plan.Next(42_000); len(d.Owe) != 1 || d.Owe[0].Key.Due != want || d.Owe[0].To != engine.Endless {
		t.Errorf("the rows are %+v, want one range from %d on", d.Owe, want)
	}
}

// A range that the wheel goes through is decided when its tasks in memory have rows of their own, or are
// stored: its row goes with the decision.
func TestRangeIsDecidedBehindItsTasks(t *testing.T) {
	x := newAhead(t)
	lv := x.owe(t, 20_000, 100_000, nil)
	x.now = 20_000
	task := x.sh.take(lv, 20_000, x.now)
	x.addLate(lv, LateTimer{due: 21_000, at: 21_000, behind: true})
	x.sh.mu.Unlock()
	d, _ := x.Decide(x.Late.Take(), 1000)
	if !d.IsEmpty() || len(d.Pay) > 0 {
		t.Errorf("decided: the row of the range goes (%v), which the task has no other than", d.Pay)
	}
	task.row = rowCurrent
	if d, _ = x.Decide(d.Done(), 1000); len(d.Pay) != 1 || len(d.Owe) != 1 {
		t.Errorf("not decided: pays %v, owes %v", d.Pay, d.Owe)
	}
}

// The clock is set forward while the decision is stored that a timer falls behind. What the step made late is
// decided then, from where an earlier decision ends, and while no range of the timer is taken apart. Until
// then the watermark stays before the step.
func TestStepWhileATimerFallsBehind(t *testing.T) {
	x := newAhead(t)
	sh, id := x.sh, x.def.ID
	x.def.Misfire = engine.Misfire{Policy: engine.MisfireSkip, Window: time.Hour}
	x.now = 150_000
	lv, err := x.enroll(sh, &x.def)
	if err != nil {
		t.Fatal(err)
	}
	x.addLate(lv, LateTimer{due: 150_000, at: x.now, behind: true})
	sh.mu.Unlock()
	decide := func(want bool) {
		t.Helper()
		if lv.behind && x.IsJudged(id) {
			t.Error("judged before its decision is stored")
		}
		d, _ := x.Decide(x.Late.Take(), 1000)
		if d.IsEmpty() == want {
			t.Fatalf("decided: %v, want %v", !d.IsEmpty(), want)
		}
		for _, r := range d.Records {
			if len(d.Records) > 1 || r.Key.Due != 302_000 || r.DueLast != 489_000 || r.Reason != engine.ReasonMisfire {
				t.Errorf("recorded: %v to %d", r.Key, r.DueLast)
			}
		}
		d.Stored()
		x.Late.Return(d.Done())
	}
	x.now = 500_000
	judge := x.Step(200_000, x.now)
	sh.mu.Lock()
	if x.judgeBehind(sh, lv, 200_000, x.now) {
		t.Error("a timer whose decision is under way is not waited for")
	}
	sh.mu.Unlock()
	decide(true)
	if low := x.Pins.Lowest(math.MaxInt64); low != 200_000 {
		t.Errorf("the watermark may go up to %d", low)
	}
	sh.decided[id] = 300_000
	release, _ := x.TryClaimRows(id)
	sh.mu.Lock()
	if x.judgeBehind(sh, lv, 200_000, x.now) {
		t.Error("a timer whose range may be taken apart is not waited for")
	}
	sh.mu.Unlock()
	decide(false)
	release()
	judge(t.Context())
	if release, err = x.Claim(t.Context(), id); err != nil { // by a change, which may wait for the decision
		t.Fatal(err)
	}
	x.sh.mu.Lock()
	sh.settling = 301_000
	sh.mu.Unlock()
	d, _ := x.Decide(x.Late.Take(), 1000)
	x.Late.Return(d.Failed()) // it may have been stored
	sh.mu.Lock()
	sh.watermark = 303_000
	sh.mu.Unlock()
	decide(true)
	release()
	if !x.IsJudged(id) || x.Pins.Lowest(math.MaxInt64) != math.MaxInt64 || x.Late.Waiting.Load() != 0 || !lv.behind {
		t.Errorf("not judged in the end: %v, %+v", x.IsJudged(id), x.Pins.list)
	}
}

// The clock is set forward again between the commit of a decision and the end of its batch: the second step is
// decided, and the timer stays out of the wheel.
func TestTwoStepsOfATimerThatIsBehind(t *testing.T) {
	x := newAhead(t)
	x.def.Misfire = engine.Misfire{Policy: engine.MisfireSkip, Window: time.Hour}
	x.now = 150_000
	lv, err := x.enroll(x.sh, &x.def)
	if err != nil {
		t.Fatal(err)
	}
	x.addLate(lv, LateTimer{due: x.now, at: x.now, behind: true})
	x.sh.mu.Unlock()
	decide := func() *Decisions {
		d, _ := x.Decide(x.Late.Take(), 1000)
		d.Stored()
		return d
	}
	decide().Done()
	x.now = 500_000
	x.Step(200_000, x.now)(t.Context())
	first := decide()
	x.now = 900_000
	x.Unfolded(&x.def, 502_000) // right before the step, behind the last look at the clock
	x.Step(500_100, x.now)(t.Context())
	first.Done()
	if d := decide(); len(d.Records) != 1 || d.Records[0].Key.Due != 503_000 || lv.next != 0 {
		t.Errorf("recorded: %+v, in the wheel: %d", d.Records, lv.next)
	}
}

// Of several ranges ahead of the clock, the wheel goes through the earliest, whichever comes first; the
// others are left to refill.
func TestWheelGoesThroughTheEarliestRange(t *testing.T) {
	for _, first := range []int64{20_000, 50_000} {
		x := newAhead(t)
		var lv *Timer
		for _, from := range []int64{first, 70_000 - first} {
			lv = x.owe(t, from, from+20_000, nil)
		}
		x.sh.mu.Unlock()
		early, late := engine.Key{Timer: x.def.ID, Due: 19_999}, engine.Key{Timer: x.def.ID, Due: 49_999}
		if lv.turning.from != early.Due || lv.next != 20_000 || !lv.laneMemory.spilled.Load() || x.FollowsRange(early) || !x.FollowsRange(late) {
			t.Errorf("the wheel goes from %d on, refill reads: %v", lv.turning.from, lv.laneMemory.spilled.Load())
		}
	}
}

// A timer has got another target while the wheel goes through a range of it, whose row is in the lane of the former
// one. If an earlier range takes the place of the range, refill reads the row in that lane.
func TestRangeIsLeftToItsLane(t *testing.T) {
	x := newAhead(t)
	x.owe(t, 50_000, 70_000, nil)
	former := x.Lanes.Of(x.def.Lane())
	x.sh.mu.Unlock()
	moved := x.def
	moved.Callback.URL = "http://127.0.0.1:10/"
	x.Revise(&moved, x.now)
	x.def = moved
	x.sh.mu.Lock()
	x.owe(t, 20_000, 40_000, nil)
	x.sh.mu.Unlock()
	if !former.spilled.Load() || x.Lanes.Of(moved.Lane()).spilled.Load() {
		t.Error("refill reads another lane than that of the row")
	}
}

// There are millions of timers in memory.
func TestSizeOfATimer(t *testing.T) {
	if n := unsafe.Sizeof(Timer{}); n > 192 {
		t.Errorf("a timer takes %d bytes", n)
	}
}

// A change cancels a task of which only the row of its range tells yet. The change removes that row, so the change has the
// record: if the process is killed after the commit, nothing else would have it.
func TestCancelOfATaskWithoutARow(t *testing.T) {
	x := newAhead(t)
	lv := x.owe(t, 20_000, 100_000, nil)
	x.now = 30_500
	if k := x.sh.take(lv, 20_000, x.now); k == nil || !k.lacksRow() {
		t.Fatalf("the task is %v", k)
	}
	p := lv.plan
	x.sh.mu.Unlock()
	c := &engine.Change{}
	if _, waited := x.Cancel(c, &policy.Ending{Former: &x.def, Reason: engine.ReasonDisabled, At: x.now, UpTo: x.now}, &p); !waited {
		t.Error("nothing waited")
	}
	if len(c.Tasks) != 1 || c.Tasks[0].Key.Due != 20_000 || c.Tasks[0].Status != engine.Cancelled || len(c.Pay) != 1 {
		t.Errorf("records %v, and %v is paid", c.Tasks, c.Pay)
	}
}

// Dues of a timer are late that lie before the watermark and in no range: they are over, and only those after the watermark
// are called. A change that is made just before a step of the clock is noticed leaves such a timer in the wheel.
func TestLateBeforeTheWatermark(t *testing.T) {
	x := newAhead(t)
	x.def.Misfire = engine.Misfire{Policy: engine.MisfireAll, Window: time.Hour}
	p, err := plan.Of(&x.def)
	if err != nil {
		t.Fatal(err)
	}
	lv := x.join(x.sh, &x.def, &p)
	x.now = 110_000
	x.addLate(lv, LateTimer{due: 20_000, at: x.now})
	x.sh.mu.Unlock()
	d, _ := x.Decide(x.Late.Take(), 1000)
	if len(d.Owe) == 0 || len(d.Records) > 0 {
		t.Errorf("%d rows and %d records", len(d.Owe), len(d.Records))
	}
	for _, o := range d.Owe {
		if o.NotBefore <= 100_000 {
			t.Errorf("a row of %d to %d", o.Key.Due, o.To)
		}
	}
}

// A timer is behind, and the clock is set back: the wheel goes through a range of it, whose last due may have a task.
// After that the dues lie in the range without end, not in the wheel.
func TestRangeOfATimerThatIsBehind(t *testing.T) {
	for _, has := range []bool{false, true} {
		x := newAhead(t)
		x.now = 50_000
		lv, err := x.enroll(x.sh, &x.def)
		if err != nil {
			t.Fatal(err)
		}
		x.Horizon.Store(1_000_000)
		x.addLate(lv, LateTimer{due: 101_000, at: x.now, behind: true})
		x.sh.mu.Unlock()
		d, _ := x.Decide(x.Late.Take(), 1000)
		d.Stored()
		d.Done()
		x.now = 10_000
		x.sh.mu.Lock()
		if has {
			o := engine.Owed{Key: engine.Key{Timer: x.def.ID, Due: 21_000}, Generation: 1, NotBefore: 90_000, Lane: x.def.Lane()}
			if _, err := x.addRow(x.sh, &x.def, o, nil, x.now); err != nil {
				t.Fatal(err)
			}
		}
		lv = x.owe(t, 20_000, 21_000, nil)
		x.sh.mu.Unlock()
		for _, due := range []int64{20_000, 21_000} {
			if lv.next != due {
				t.Fatalf("in the wheel: %d, want %d", lv.next, due)
			}
			x.now = due
			x.Fire(due, []Item{{id: x.def.ID}})
		}
		if !lv.behind || lv.next != 0 || x.FollowsRange(engine.Key{Timer: x.def.ID, Due: 101_000}) {
			t.Errorf("behind: %v, in the wheel: %d", lv.behind, lv.next)
		}
	}
}

// The due of a one-shot was decided, its row has left memory, and the timer with it. The clock is set back, and a change
// makes the due again: it comes into memory.
func TestChangeOfADecidedDueOutsideMemory(t *testing.T) {
	now := int64(1_000_000)
	m := New(quietConfig(&now))
	def := everySecond()
	def.Schedule, def.At, def.LastDue = engine.Schedule{At: now + 5000}, now+5000, now+5000
	sh := m.shardOf(def.ID)
	sh.watermark, sh.decided[def.ID] = now, def.At
	m.Horizon.Store(now + 60_000)
	next := *def
	next.Version, next.Generation = 2, 2
	m.Replace(def, &next, engine.ReasonReplaced, now)
	read := m.Reads.Begin()
	defer read.End()
	if _, _, err := m.Load(def.ID, &next, now, true, read); err != nil || !m.Scheduled(def.ID) {
		t.Errorf("the due of the next generation is not scheduled, %v", err)
	}
}

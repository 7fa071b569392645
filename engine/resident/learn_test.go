package resident

import (
	"testing"
	"time"

	"xtimer/engine"
)

// The owner of a shard learns what became of a call that was under way when the shard was given:
// once, of the attempt that its row tells of, and while the timer is not being changed. An
// owner that is not told repeats the call, marked; its row says that the call has begun until
// the repeat has ended, over any number of hand-overs.
func TestLearn(t *testing.T) {
	now := int64(100_000)
	cfg := quietConfig(&now)
	cfg.IsNode = true
	m := New(cfg)
	def := everySecond()
	row := func(due int64, task *engine.Task) {
		t.Helper()
		o := engine.Owed{Key: engine.Key{Timer: 1, Due: due}, Generation: 1, Begun: true, NotBefore: now + 60_000, Lane: def.Lane(), Task: task}
		read := m.Reads.Begin()
		defer read.End()
		if fate, ready, _, err := m.AddRow(&Row{Owed: o, Timer: def, Read: read, ByLane: true}, now); fate != RowKept || ready != nil || err != nil {
			t.Fatalf("the row: %v, %v, %v", fate, ready, err)
		}
	}
	told := func(due int64, attempts int, status engine.TaskStatus) *engine.Task {
		x := &engine.Task{Key: engine.Key{Timer: 1, Due: due}, Generation: 1, Since: due, Status: status}
		for n := range attempts {
			x.Attempts = append(x.Attempts, engine.Attempt{N: n + 1, Code: 500})
		}
		if status == engine.Retrying {
			x.NotBefore = now + 5000
		}
		return x
	}
	learns := func(what string, x *engine.Task, want Learned) {
		t.Helper()
		if got := m.Learn(x); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	learns("a task that is not in memory", told(5000, 1, engine.Succeeded), LearnedLater)
	row(5000, nil)
	row(6000, told(6000, 2, engine.Retrying))
	row(7000, nil)
	release, err := m.Claim(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	learns("a change is under way", told(5000, 1, engine.Succeeded), LearnedLater)
	release()
	former := told(5000, 1, engine.Succeeded)
	former.Generation = 2
	learns("another generation", former, LearnedLate)
	learns("a second attempt, and no first one", told(5000, 2, engine.Succeeded), LearnedLate)
	learns("the attempt", told(5000, 1, engine.Succeeded), LearnedNow)
	learns("the attempt once more", told(5000, 1, engine.Succeeded), LearnedLate)
	learns("a former attempt", told(6000, 2, engine.Succeeded), LearnedLate)
	learns("a failed attempt", told(6000, 3, engine.Retrying), LearnedNow)
	learns("a failed attempt once more", told(6000, 3, engine.Retrying), LearnedLate)
	sh := m.shardOf(1)
	if done := sh.tasks.find(engine.Key{Timer: 1, Due: 5000}); done.state != Done || done.Status != engine.Succeeded || len(done.Attempts) != 1 {
		t.Errorf("what succeeded is %v, %v", done.state, done.Status)
	}
	tried := sh.tasks.find(engine.Key{Timer: 1, Due: 6000})
	if tried.state != Retrying || tried.NotBefore != now+5000 || tried.row != rowStale || len(tried.Attempts) != 3 {
		t.Errorf("what failed is %v until %d", tried.state, tried.NotBefore)
	}
	begin := func(tk *Task) *Attempt {
		now = tk.NotBefore
		sh.mu.Lock()
		sh.wake(tk.Key, now)
		sh.mu.Unlock()
		a, _, _ := m.Begin(tk, now, &Body{})
		return a
	}
	if a := begin(tried); a == nil || a.Call.Attempt != 4 || a.Redelivered {
		t.Errorf("the next attempt: %+v", a)
	}
	if a := begin(sh.tasks.find(engine.Key{Timer: 1, Due: 7000})); a == nil || !a.Redelivered {
		t.Errorf("the attempt whose end was not told: %+v", a)
	}
	m.Cede(engine.SetOf(def.ID.Shard()))
	learns("of a shard that is another's", told(6000, 4, engine.Succeeded), LearnedLater)
	s := &engine.Settlement{}
	if _, ok := m.CaptureLast(def.ID.Shard(), now, now, true, s); !ok {
		t.Fatal("the shard is not closed")
	}
	begun := map[int64]bool{}
	for _, o := range s.Owe {
		begun[o.Key.Due] = o.Begun
	}
	if !begun[7000] || begun[6000] {
		t.Errorf("no byte of either call was sent here; what the rows tell of calls whose end is not known: %v", begun)
	}
}

// The delivery is changed to at_most_once and back while a call is under way that a crash had interrupted before.
func TestDeliveryChangedTwiceDuringACall(t *testing.T) {
	now := int64(10_000)
	m := New(quietConfig(&now))
	def := everySecond()
	sh, lv := joined(t, m, def)
	tk := sh.take(lv, 10_000, now)
	tk.past = wasUnended
	a, _, _ := m.Begin(tk, now, &Body{})
	if a == nil || !a.Enter() {
		t.Fatal("no call")
	}
	a.Leave(true)
	once := *def
	once.Version, once.Delivery = def.Version+1, engine.AtMostOnce
	m.Revise(&once, now)
	again := *def
	again.Version = def.Version + 2
	m.Revise(&again, now)
	if tk.state != Sending {
		t.Errorf("the task is %v while its call is under way", tk.state)
	}
	e := a.End(time.UnixMilli(now), engine.Outcome{Class: engine.ClassOK, Code: 200, Sent: time.UnixMilli(now)})
	if !e.Counts || tk.Status != engine.Succeeded {
		t.Errorf("counts %v, the task is %v", e.Counts, tk.Status)
	}
}

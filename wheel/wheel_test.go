package wheel

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHandle(t *testing.T) {
	if size := unsafe.Sizeof(Handle{}); size > 16 {
		t.Errorf("a handle has %d bytes", size)
	}
	w := New(Config{}, func(int64, []int) {})
	if w.Remove(Handle{}) {
		t.Error("the zero handle names something")
	}
	old := w.Add(1000, 1)
	if !w.Remove(old) || w.Remove(old) {
		t.Error("a value must be removed once")
	}
	if again := w.Add(1000, 2); again == old || again.slot != old.slot {
		t.Fatalf("%v after %v: the slot is not used again, or not told apart", again, old)
	}
	if w.Remove(old) {
		t.Error("a stale handle removed another value")
	}
	if w.Remove(Handle{seq: 1, slot: 1 << 30}) {
		t.Error("a handle of another wheel removed something")
	}
}

// What a burst took is given back, and stale handles stay harmless then.
func TestMemoryGivenBack(t *testing.T) {
	w := New(Config{}, func(int64, []int) {})
	handles := make([]Handle, 100_000)
	for i := range handles {
		handles[i] = w.Add(rand.Int64N(1e6), i)
	}
	if s := w.Stats(); s.Chunks != 98 {
		t.Errorf("%d chunks, want 98", s.Chunks)
	}
	for _, h := range handles {
		if !w.Remove(h) {
			t.Fatal("lost")
		}
	}
	if s := w.Stats(); s.Chunks > 12 || s.Drawers > 0 {
		t.Errorf("empty, it holds %d chunks and %d drawers", s.Chunks, s.Drawers)
	}
	for _, h := range handles {
		if w.Remove(h) {
			t.Fatal("a stale handle removed something")
		}
	}
	for i := range handles {
		w.Add(rand.Int64N(1e6), i)
	}
	if s := w.Stats(); s.Chunks != 98 || len(w.slab.chunks) != 98 {
		t.Errorf("%d of %d chunks, want 98", s.Chunks, len(w.slab.chunks))
	}
	w.checkInvariants(t.Fatalf)
}

// Adding and removing must not pile up calls in the clockwork.
func TestEmptyDrawersSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(Config{}, func(int64, []int) {})
		defer start(w)()
		synctest.Wait()
		now := time.Now().UnixMilli()
		for i := range 20_000 {
			w.Remove(w.Add(now+1000+int64(i)*drawerLen, i))
			w.Remove(w.Add(now+3600_000, i))
			if i%100 == 0 {
				synctest.Wait()
			}
		}
		if s := w.Stats(); s.Drawers > 4200 {
			t.Errorf("%d empty drawers wait for their call", s.Drawers)
		}
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		if s := w.Stats(); s.Drawers > 0 || s.Missed > 0 {
			t.Errorf("in the end: %+v", s)
		}
	})
}

// What is due behind a crowd does not wait until all of it is handed on: for the round
// under way and its own, of a batch for each crowd.
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowds, each, length = 3, 50 * batchLen, 5 * time.Millisecond
		at := time.Now().Truncate(time.Millisecond).Add(time.Second).UnixMilli()
		var fired int
		late := map[int64]int64{}
		w := New(Config{}, func(due int64, batch []int) {
			for _, v := range batch {
				if fired++; v < 0 {
					late[due] = time.Now().UnixMilli() - due
				}
			}
			if len(batch) == batchLen {
				time.Sleep(length)
			}
		})
		for c := range int64(crowds) {
			for i := range each {
				w.Add(at+100*c, i)
			}
		}
		others := 0
		for due := at + 1; due < at+2000; due += 7 {
			w.Add(due, -1)
			others++
		}
		end := start(w)
		time.Sleep(5 * time.Second)
		end()
		if fired != crowds*each+others || len(late) != others {
			t.Fatalf("%d fired of %d, %d of %d others", fired, crowds*each+others, len(late), others)
		}
		for due, ms := range late {
			if ms > 2*crowds*length.Milliseconds() {
				t.Errorf("what was due %d ms behind the first crowd came %d ms late", due-at, ms)
			}
		}
	})
}

// One that is added late, before a crowd that is being fired, leaves the turns of what
// lies behind it as they are.
func TestCrowdLateAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 100 * batchLen
		at := time.Now().Truncate(time.Millisecond).Add(time.Second).UnixMilli()
		crowd, left := all, 0 // left: when the one behind it came
		var w *Wheel[int]
		w = New(Config{}, func(due int64, batch []int) {
			switch due {
			case at:
				if crowd == all {
					w.Add(at-1, 0)
				}
				crowd -= len(batch)
			case at + 1:
				left = crowd
			}
			time.Sleep(5 * time.Millisecond)
		})
		for range all {
			w.Add(at, 0)
		}
		w.Add(at+1, 0)
		end := start(w)
		time.Sleep(5 * time.Second)
		end()
		if left < all*9/10 {
			t.Errorf("what was behind a crowd came when %d of %d were left", left, all)
		}
	})
}

// A crowd goes on also where more comes behind it than fire can take.
func TestCrowdDoesNotStarve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd, ticks, each = 20 * batchLen, 1000, batchLen / 2
		at := time.Now().Truncate(time.Millisecond).Add(time.Second).UnixMilli()
		first, others, left := crowd, ticks*each, 0 // left: of the others, when the crowd was handed on
		w := New(Config{}, func(due int64, batch []int) {
			time.Sleep(time.Duration(len(batch)) * 4 * time.Microsecond)
			if due > at {
				others -= len(batch)
			} else if first -= len(batch); first == 0 {
				left = others
			}
		})
		for i := range crowd + ticks*each {
			w.Add(at+int64(max(0, i-crowd+each)/each), 0)
		}
		end := start(w)
		time.Sleep(10 * time.Second)
		end()
		if first != 0 || others != 0 || left < ticks*each*9/10 {
			t.Errorf("%d of the crowd and %d of the others are left; %d were when the crowd was handed on", first, others, left)
		}
	})
}

// Values that fire has no time for are late, a crowd is not. What was told is taken back at the end.
func TestOnLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []bool
		var late, onTime int // batches
		slow := 3 * time.Millisecond
		w := New(Config{OnLate: func(late bool) { told = append(told, late) }}, func(due int64, batch []int) {
			was := time.Now().UnixMilli()-due > tooLate
			if is := len(told) > 0 && told[len(told)-1]; is != was && len(batch) < batchLen {
				t.Errorf("%v was told of a batch %d ms late", is, time.Now().UnixMilli()-due)
			}
			if was {
				late++
			} else {
				onTime++
			}
			time.Sleep(slow)
		})
		from := time.Now().Truncate(time.Millisecond).Add(time.Second).UnixMilli()
		for i := range int64(100) {
			w.Add(from+i, 0)
		}
		end := start(w)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if late < 80 || onTime < 5 || len(told) != late+1 {
			t.Errorf("%d batches were late, %d were not, and OnLate was told %d times", late, onTime, len(told))
		}

		told, slow = nil, 10*time.Millisecond
		from = time.Now().UnixMilli() + 1000
		for range 20 * batchLen {
			w.Add(from, 0)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(told) > 0 {
			t.Errorf("OnLate was told %d times of a crowd", len(told))
		}

		slow = time.Minute
		w.Add(from-1, 0) // late
		time.Sleep(time.Second)
		end()
		if !slices.Equal(told, []bool{true, false}) {
			t.Errorf("of one late value and the end, OnLate was told %v", told)
		}
	})
}

func TestRunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fired atomic.Int64
		w := New(Config{}, func(_ int64, batch []int) { fired.Add(int64(len(batch))) })
		stop := start(w)
		synctest.Wait()
		if err := w.Run(t.Context()); err == nil {
			t.Error("ran twice at once")
		}
		w.Add(time.Now().UnixMilli()+10_000, 1)
		stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		if fired.Load() != 0 || w.Len() != 1 {
			t.Error("fired after Run")
		}
		defer start(w)()
		synctest.Wait()
		if fired.Load() != 1 {
			t.Error("the second Run did not fire what the first had left")
		}
	})
}

// stepped is a wheel in a bubble, on a wall clock that can be set.
type stepped struct {
	*Wheel[int]
	off atomic.Int64
	mu  sync.Mutex
	log seen
}

type seen struct {
	fires []int64 // the dues
	steps []time.Duration
	lasts []int64
	order string // f for a fire, s for a step
}

func (s *stepped) wall() time.Time { return time.Now().Add(time.Duration(s.off.Load())) }

// set steps the clock while the hand rests: one that has just read it goes by what
// it read.
func (s *stepped) set(d time.Duration) {
	synctest.Wait()
	s.off.Add(int64(d))
}

// look waits until all is at rest.
func (s *stepped) look() seen {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log
}

func newStepped(t *testing.T) *stepped {
	s := &stepped{}
	s.Wheel = New(Config{
		Now: s.wall,
		OnStep: func(d time.Duration) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.log.steps, s.log.lasts = append(s.log.steps, d), append(s.log.lasts, s.Looked())
			s.log.order += "s"
		},
	}, func(due int64, batch []int) {
		if now := s.wall().UnixMilli(); now < due {
			t.Errorf("due %d fired at %d on the wall clock", due, now)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.log.fires = append(s.log.fires, due)
		s.log.order += "f"
	})
	return s
}

func TestStepForward(t *testing.T) {
	for _, d := range []time.Duration{200 * time.Millisecond, time.Hour, 24 * 400 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := newStepped(t)
			defer start(s.Wheel)()
			base := s.wall().UnixMilli()
			skipped := base + 10_000 + d.Milliseconds()/2
			after := base + 10_000 + d.Milliseconds() + 5000
			s.Add(skipped, 1)
			s.Add(after, 2)
			time.Sleep(10 * time.Second)
			time.Sleep(time.Millisecond)
			s.set(d)
			before := s.IsSet()
			time.Sleep(poll)
			if after := s.IsSet(); !before || after {
				t.Errorf("is set: %v before OnStep, %v after", before, after)
			}
			got := s.look()
			if got.order != "sf" || got.fires[0] != skipped {
				t.Fatalf("%v within a poll: %v %v", d, got.order, got.fires)
			}
			if set := base + 10_001; got.lasts[0] > set || got.lasts[0] <= set-poll.Milliseconds() {
				t.Errorf("the wheel looked at the clock %d ms before the step", set-got.lasts[0])
			}
			if got.steps[0] != d || s.Stats().LastStep != d {
				t.Errorf("the step was %v, not %v", got.steps[0], d)
			}
			time.Sleep(5*time.Second - poll - 2*time.Millisecond)
			got = s.look()
			if len(got.fires) != 1 {
				t.Error("early after the step")
			}
			time.Sleep(time.Millisecond)
			got = s.look()
			if len(got.fires) != 2 || len(got.steps) != 1 {
				t.Errorf("not on time after the step: %v, steps %v", got.fires, got.steps)
			}
			if m := s.Stats(); m.Missed > 0 {
				t.Errorf("the clockwork missed: %+v", m)
			}
		})
	}
}

func TestStepBackward(t *testing.T) {
	for _, d := range []time.Duration{200 * time.Millisecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			s := newStepped(t)
			defer start(s.Wheel)()
			base := s.wall().UnixMilli()
			s.Add(base+9000, 0)
			s.Add(base+12_000, 1)
			time.Sleep(10 * time.Second)
			if low := s.Low(); low != base+10_000 {
				t.Errorf("Low is %d, want %d", low, base+10_000)
			}
			s.set(-d)
			if low := s.Low(); low > s.wall().UnixMilli() {
				t.Errorf("Low is %d, the wall clock is behind it", low)
			}
			s.Add(s.wall().UnixMilli()+2, 2) // before the hand has noticed
			time.Sleep(2 * time.Millisecond)
			got := s.look()
			if len(got.fires) != 2 || got.fires[1] != base+10_000-d.Milliseconds()+2 {
				t.Errorf("added right after the step: %v", got.fires)
			}
			batches := s.Stats().Batches
			time.Sleep(2*time.Second + d - 3*time.Millisecond)
			got = s.look()
			if s.Stats().Batches != batches {
				t.Error("fired early on the new clock")
			}
			time.Sleep(time.Millisecond)
			got = s.look()
			if s.Stats().Batches != batches+1 || len(got.steps) != 1 || got.steps[0] != -d {
				t.Errorf("%v, steps %v", got.fires, got.steps)
			}
			if m := s.Stats(); m.Missed > 0 {
				t.Errorf("the clockwork missed: %+v", m)
			}
		})
	}
}

// A clock that is slewed is not set: no step, never early.
func TestSlew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStepped(t)
		defer start(s.Wheel)()
		base := s.wall().UnixMilli()
		for i := range 100 {
			s.Add(base+int64(i)*50, i)
		}
		for i := range 500 {
			s.set(time.Duration(1-2*(i/250)) * time.Millisecond) // a tenth faster, then a tenth slower
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		got := s.look()
		if len(got.fires) != 100 || len(got.steps) > 0 || !slices.IsSorted(got.fires) {
			t.Errorf("%d of 100 fired, steps %v", len(got.fires), got.steps)
		}
	})
}

// fire may use the wheel.
func TestReentrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *Wheel[int]
		var got []int
		var victim Handle
		w = New(Config{}, func(due int64, batch []int) {
			for _, v := range batch {
				got = append(got, v)
				switch v {
				case 1:
					w.Add(due, 2)
					w.Add(due-5, 3)
					w.Add(due+1, 4)
					w.Remove(victim)
				}
			}
		})
		base := time.Now().UnixMilli()
		victim = w.Add(base+101, 5)
		w.Add(base+100, 1)
		defer start(w)()
		time.Sleep(101 * time.Millisecond)
		synctest.Wait()
		if !slices.Equal(got, []int{1, 3, 2, 4}) {
			t.Errorf("got %v", got)
		}
	})
}

// On the real clock, with many hands on it: exactly once, never early, and Low never
// says done of what is not.
func TestStress(t *testing.T) {
	const adders, each = 4, 5000
	type entry struct {
		due   int64
		state atomic.Int32 // 0 not added, 1 added, 2 maybe removed, 3 fired
	}
	entries := make([]entry, adders*each)
	var fired, removed, early atomic.Int64
	w := New(Config{}, func(due int64, batch []int) {
		now := time.Now().UnixNano()
		for _, id := range batch {
			if now < due*1e6 {
				early.Add(1)
			}
			if entries[id].due != due || entries[id].state.Swap(3) == 3 {
				t.Errorf("%d fired twice, or with due %d instead of %d", id, due, entries[id].due)
			}
		}
		fired.Add(int64(len(batch)))
	})
	stop := start(w)

	var wg sync.WaitGroup
	done := make(chan struct{})
	for a := range adders {
		wg.Go(func() {
			for i := range each {
				e := &entries[a*each+i]
				e.due = time.Now().UnixMilli() + rand.Int64N(300) - 2
				h := w.Add(e.due, a*each+i)
				e.state.CompareAndSwap(0, 1)
				if i%3 == 0 {
					if e.state.CompareAndSwap(1, 2) && w.Remove(h) {
						removed.Add(1)
					}
				}
				if i%100 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	checked := make(chan struct{})
	go func() {
		defer close(checked)
		var added []int
		for {
			select {
			case <-done:
				return
			default:
			}
			added = added[:0]
			for i := range entries {
				if entries[i].state.Load() == 1 {
					added = append(added, i)
				}
			}
			low := w.Low()
			if now := time.Now().UnixMilli(); low > now {
				t.Errorf("Low %d is later than now %d", low, now)
			}
			for _, i := range added {
				if e := &entries[i]; e.due <= low && e.state.Load() == 1 {
					t.Errorf("Low is %d, and due %d has not been fired", low, e.due)
				}
			}
			runtime.Gosched()
		}
	}()
	wg.Wait()
	for deadline := time.Now().Add(10 * time.Second); w.Len() > 0 && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	close(done)
	<-checked
	stop()
	if fired.Load()+removed.Load() != adders*each {
		t.Errorf("%d fired and %d removed of %d", fired.Load(), removed.Load(), adders*each)
	}
	if early.Load() > 0 {
		t.Errorf("%d early", early.Load())
	}
	w.checkInvariants(t.Fatalf)
}

// What is added while the hand sleeps towards something later is not missed.
func TestAddDuringSleep(t *testing.T) {
	worst := make(chan time.Duration, 1000)
	w := New(Config{}, func(due int64, batch []int) {
		if slices.Contains(batch, 1) {
			worst <- time.Since(time.UnixMilli(due))
		}
	})
	defer start(w)()
	var late []time.Duration
	for range 100 {
		now := time.Now().UnixMilli()
		w.Add(now+5, 0) // the hand goes to sleep for this
		time.Sleep(200 * time.Microsecond)
		w.Add(now+2, 1)
		late = append(late, <-worst)
	}
	slices.Sort(late)
	if late[0] < 0 || late[10] > time.Millisecond { // not the median: a busy machine delays us too; unwoken, all are 3 ms late
		t.Errorf("late by %v … %v … %v", late[0], late[50], late[99])
	}
	t.Logf("late by %v … %v … %v", late[0], late[50], late[99])
}

func TestWakeBeforeSleep(t *testing.T) {
	var a alarmClock
	a.init()
	for _, sleep := range []func() bool{
		func() bool { return a.nap(time.Minute) },
		func() bool { _, full := a.sleep(time.Minute); return full },
	} {
		a.wake()
		if sleep() {
			t.Error("overslept a wake that came before")
		}
		time.AfterFunc(5*time.Millisecond, a.wake)
		if sleep() {
			t.Error("overslept a wake")
		}
		select {
		case <-a.token:
		default:
		}
	}
	if over, full := a.sleep(2 * time.Millisecond); !full || over < 0 {
		t.Errorf("slept %v too short, %v", -over, full)
	}
}

// In a bubble, and only there, the thread must not sleep.
func TestProbe(t *testing.T) {
	var a alarmClock
	a.init()
	a.probe()
	if a.plain {
		t.Error("no exact sleep on the real clock")
	}
	synctest.Test(t, func(t *testing.T) {
		a.probe()
		if !a.plain {
			t.Error("exact sleep in a bubble")
		}
	})
}

// The hand is woken for what is near when the clockwork is made anew, because too many
// of its drawers are empty, before its call for that came.
func TestRemoveManyBeforeACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var came int64
		w := New(Config{}, func(int64, []int) { came = time.Now().UnixMilli() })
		end := start(w)
		synctest.Wait()
		now := time.Now().UnixMilli()
		var far []Handle
		for i := range int64(5000) {
			far = append(far, w.Add(now+3_600_000+i*drawerLen, 0))
		}
		due := now + 100
		w.Add(due, 1)
		time.Sleep(95500 * time.Microsecond)
		for _, h := range far {
			w.Remove(h)
		}
		time.Sleep(time.Second)
		end()
		if late := came - due; late != 0 {
			t.Errorf("it came %d ms late", late)
		}
	})
}

// A clockwork that stops at the instant at which its second hand turns ends all the same.
func TestStopWhileHand2Turns(t *testing.T) {
	for range 1000 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			w := New(Config{}, func(int64, []int) {})
			w.slots = 64
			from := time.Now().UnixMilli()
			for i := range 100 {
				w.Add(from+int64(i)*40, i)
			}
			done := make(chan error)
			go func() { done <- w.Run(ctx) }()
			time.Sleep(time.Duration(1024-from%64) * time.Millisecond)
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// A clockwork that is stopped right after calls were armed ends, although these calls move from hand 2 to hand 1.
func TestStopRightAfterArm(t *testing.T) {
	for i := range 1000 {
		synctest.Test(t, func(t *testing.T) {
			c := newClockwork(64, time.Now, func(*clockwork, int64) {})
			time.Sleep(time.Duration(1000+i%64) * time.Millisecond) // hand 1 is behind
			now := time.Now().Add(ahead).UnixMilli()
			for k := range int64(20) {
				c.arm(k, now+5+3*k)
			}
			for range i % 100 {
				runtime.Gosched()
			}
			c.discard()
			<-c.ended
		})
	}
}

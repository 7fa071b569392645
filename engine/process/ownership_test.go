package process

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
)

var errAway = errors.New("the tier is away")

// owning is an Ownership that runs in a bubble, over a tier that a test changes.
type owning struct {
	*Ownership
	t       *testing.T
	stepped atomic.Int64 // of the wall clock (ns)
	tier    atomic.Pointer[func(ctx context.Context) error]
	asked   atomic.Int64
	err     error // of Run, once done is closed
	done    chan struct{}
	stop    context.CancelFunc
}

// own runs a test of an Ownership that has its first answer.
func own(t *testing.T, test func(t *testing.T, o *owning)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		o := &owning{t: t, done: make(chan struct{}), stop: cancel}
		o.answers(func(context.Context) error { return nil })
		o.Ownership = NewOwnership(func(ctx context.Context) error {
			o.asked.Add(1)
			return (*o.tier.Load())(ctx)
		}, func() time.Time { return time.Now().Add(time.Duration(o.stepped.Load())) })
		if o.Holds() {
			t.Error("it holds before the first question")
		}
		go func() { o.err = o.Run(ctx); close(o.done) }()
		if !o.Await() || !o.Holds() {
			t.Error("the first answer does not hold")
		}
		defer func() {
			cancel()
			<-o.done
		}()
		test(t, o)
	})
}

func (o *owning) answers(tier func(ctx context.Context) error) { o.tier.Store(&tier) }

// lost counts the milliseconds in which it does not hold.
func (o *owning) lost(during time.Duration) (ms int) {
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if !o.Holds() {
			ms++
		}
	}
	return ms
}

// waits tells for how long Await waits, and what it says.
func (o *owning) waits() (time.Duration, bool) {
	from := time.Now()
	holds := o.Await()
	return time.Since(from), holds
}

func hangs(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// While the tier answers, or is away in any way, calls never wait.
func TestOwnershipHolds(t *testing.T) {
	for name, tier := range map[string]func(ctx context.Context) error{
		"answers":    func(context.Context) error { return nil },
		"slow":       func(context.Context) error { time.Sleep(300 * time.Millisecond); return nil },
		"refuses":    func(context.Context) error { return errAway },
		"hangs":      hangs,
		"half hangs": func(context.Context) error { time.Sleep(500 * time.Millisecond); return errAway },
	} {
		t.Run(name, func(t *testing.T) {
			own(t, func(t *testing.T, o *owning) {
				o.answers(tier)
				if ms := o.lost(20 * time.Second); ms > 0 {
					t.Errorf("it does not hold for %d ms", ms)
				}
				if n := o.asked.Load(); n < 20 || n > 52 {
					t.Errorf("%d questions in 20 s", n)
				}
			})
		})
	}
}

// An answer holds from the start of its question: one that is late, as to a process that
// was stopped meanwhile, says nothing, whatever it is. The next is asked for at once.
func TestLateAnswer(t *testing.T) {
	for _, answer := range []error{nil, errAway} {
		t.Run(fmt.Sprint(answer), func(t *testing.T) {
			own(t, func(t *testing.T, o *owning) {
				resume := make(chan struct{})
				o.answers(func(context.Context) error { <-resume; return answer })
				time.Sleep(3600 * time.Millisecond)
				if o.Holds() {
					t.Error("it holds without an answer")
				}
				o.answers(func(context.Context) error { time.Sleep(50 * time.Millisecond); return engine.ErrFenced })
				close(resume)
				if took, holds := o.waits(); holds || took != 50*time.Millisecond {
					t.Errorf("holds %v, after %v", holds, took)
				}
				if <-o.done; !errors.Is(o.err, engine.ErrFenced) {
					t.Errorf("it ended with %v", o.err)
				}
			})
		})
	}
}

// A machine that is suspended, or whose clock is set, asks before the next call.
func TestOwnershipOfSetClock(t *testing.T) {
	own(t, func(t *testing.T, o *owning) {
		o.answers(func(context.Context) error { time.Sleep(5 * time.Millisecond); return nil })
		time.Sleep(time.Second)
		o.stepped.Add(int64(time.Hour))
		if o.Holds() {
			t.Error("it holds an hour later")
		}
		if took, holds := o.waits(); !holds || took > 10*time.Millisecond {
			t.Errorf("holds %v, after %v", holds, took)
		}
		o.stepped.Add(-int64(2 * time.Hour))
		if !o.Holds() {
			t.Error("it does not hold when the clock is set back")
		}
		o.answers(func(context.Context) error { time.Sleep(time.Hour); return nil })
		time.Sleep(proofHolds + askEvery)
		if o.Holds() {
			t.Error("it holds for ever when the clock is set back")
		}
		if age := o.Age(); age < 1.2 || age > 1.7 {
			t.Errorf("age %v", age)
		}
	})
}

// Once the timers are another's, or the process ends, nobody waits and nothing holds.
func TestOwnershipEnds(t *testing.T) {
	for name, end := range map[string]func(o *owning){
		"another's": func(o *owning) { o.answers(func(context.Context) error { return engine.ErrFenced }) },
		"End":       func(o *owning) { o.answers(hangs); o.End() },
		"stopped":   func(o *owning) { o.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			own(t, func(t *testing.T, o *owning) {
				resume := make(chan struct{})
				o.answers(func(ctx context.Context) error {
					select {
					case <-resume:
					case <-ctx.Done():
					}
					return errors.New("late")
				})
				o.stepped.Add(int64(time.Hour))
				waited := make(chan bool, 3)
				for range 3 {
					go func() { waited <- o.Await() }()
				}
				synctest.Wait()
				end(o)
				close(resume)
				for range 3 {
					if <-waited && name != "another's" {
						t.Error("a call may begin")
					}
				}
				time.Sleep(2 * time.Second)
				if o.Holds() || o.Await() || !o.IsOver() {
					t.Error("it is not over")
				}
			})
		})
	}
}

// Over a tier that nobody else can open nothing is asked.
func TestNoOwnership(t *testing.T) {
	var o *Ownership
	o.End()
	if !o.Holds() || !o.Await() || o.IsOver() || o.Run(t.Context()) != nil {
		t.Error("it does not hold")
	}
}

// Each call looks: that takes no memory.
func TestLookAllocatesNothing(t *testing.T) {
	own(t, func(t *testing.T, o *owning) {
		if n := testing.AllocsPerRun(100, func() { _ = o.Holds() }); n > 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// The life of a node calls while its lease is fresh, and not without an answer.
func TestOwnershipOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fresh atomic.Bool
		o := OfLife(fresh.Load)
		if o.Holds() {
			t.Error("it holds without a lease")
		}
		for range 3 {
			waited := make(chan bool)
			go func() { waited <- o.Await() }()
			synctest.Wait()
			o.Answered() // an answer that came too late
			synctest.Wait()
			fresh.Store(true)
			o.Answered()
			if !<-waited || !o.Holds() || !o.Await() {
				t.Error("it does not hold while the lease is fresh")
			}
			fresh.Store(false)
			if o.Holds() {
				t.Error("it holds when the lease has run out")
			}
		}
		waited := make(chan bool)
		go func() { waited <- o.Await() }()
		synctest.Wait()
		o.End()
		fresh.Store(true)
		if <-waited || o.Holds() || o.Await() || !o.IsOver() {
			t.Error("a call may begin after the life")
		}
	})
}

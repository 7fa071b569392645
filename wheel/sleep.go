package wheel

import "time"

// alarmClock is how the hand sleeps. Only the hand sleeps; anybody may wake it, and
// a wake before the sleep ends it at once.
type alarmClock struct {
	token chan struct{} // holds one wake
	plain bool          // sleep by the runtime alone
	exact exactSleep
}

func (a *alarmClock) init() { a.token = make(chan struct{}, 1) }

// nap sleeps for d by the runtime's timers, which an idle process feels to the
// millisecond only. It says false when it was woken before.
func (a *alarmClock) nap(d time.Duration) (full bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-a.token:
		return false
	}
}

// sleep sleeps for d as exactly as the machine can, and says by how much it overslept.
func (a *alarmClock) sleep(d time.Duration) (over time.Duration, full bool) {
	start := time.Now()
	if a.plain {
		full = a.nap(d)
	} else {
		full = a.exact.sleep(d, a.token)
	}
	return time.Since(start) - d, full
}

func (a *alarmClock) wake() {
	select {
	case a.token <- struct{}{}:
	default:
	}
	a.exact.wake()
}

// probe finds out whether the runtime's clock is the kernel's. In a bubble of
// testing/synctest it is not: its clock stands still while a thread sleeps, so a
// thread must not.
func (a *alarmClock) probe() {
	if a.plain {
		return
	}
	start := time.Now()
	a.exact.sleep(50*time.Microsecond, nil)
	a.plain = time.Since(start) == 0
}

package wheel

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// exactSleep sleeps in the kernel. The Go runtime, when idle, waits in whole
// milliseconds; a thread of our own waits in nanoseconds.
//
// It is a futex and not clock_nanosleep, which is as exact but cannot be woken: an
// Add that is due at once would have to wait for the end of the sleep.
type exactSleep struct {
	asleep atomic.Uint32 // 1 while the hand sleeps or is about to
}

const (
	futexWaitBitset = 9 | 128 // FUTEX_WAIT_BITSET, private: the timeout is a monotonic instant
	futexWake       = 1 | 128
	anyBit          = 1<<32 - 1
)

// sleep sleeps for d, or until wake or a token.
func (e *exactSleep) sleep(d time.Duration, token <-chan struct{}) (full bool) {
	var at unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &at) != nil {
		return false
	}
	at = unix.NsecToTimespec(at.Nano() + int64(d))

	// The kernel may end a sleep this much late to save power: 50 µs unless told. The
	// setting is the thread's, and the next sleep may be on another.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)

	e.asleep.Store(1)
	defer e.asleep.Store(0)
	select {
	case <-token:
		return false
	default:
	}
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&e.asleep)),
		futexWaitBitset, 1, uintptr(unsafe.Pointer(&at)), 0, anyBit)
	return errno == unix.ETIMEDOUT
}

func (e *exactSleep) wake() {
	if e.asleep.CompareAndSwap(1, 0) {
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&e.asleep)), futexWake, 1, 0, 0, 0)
	}
}

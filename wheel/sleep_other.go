//go:build !linux

package wheel

import "time"

// exactSleep is the runtime's sleep where we know no better one.
type exactSleep struct{}

func (e *exactSleep) sleep(d time.Duration, token <-chan struct{}) (full bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-token:
		return false
	}
}

func (e *exactSleep) wake() {}

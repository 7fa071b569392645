package inspect

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"xtimer/engine"
)

// Tiers is whether the tiers answer, as those found who used them.
type Tiers struct {
	// Fault is why timers cannot be read although the cold tier is there, as when a table
	// is missing.
	Fault    atomic.Pointer[string]
	Counts   atomic.Pointer[engine.Counts] // of the timers
	isRead   atomic.Bool                   // the last read of the cold tier went through
	unstored atomic.Pointer[time.Time]     // when the first of the settles that fail did; nil: they go through

	// WarmAnswers: the warm tier has answered since it last failed. One that does may
	// still refuse to be filled.
	WarmAnswers atomic.Bool
	warm        atomic.Int32 // warmEmpty, warmFilled or warmAway
}

const (
	warmEmpty = iota // before the first fill
	warmFilled
	warmAway // it failed, and has not been filled since
)

// Read notes how a read of the cold tier went.
func (s *Tiers) Read(err error) {
	if !errors.Is(err, context.Canceled) {
		s.isRead.Store(err == nil)
	}
}

// ReadsFail reports whether the last read of the cold tier failed, or it is not open yet.
func (s *Tiers) ReadsFail() bool { return !s.isRead.Load() }

// Settled notes whether a settle went through.
func (s *Tiers) Settled(ok bool) {
	if ok {
		s.unstored.Store(nil)
		return
	}
	now := time.Now()
	s.unstored.CompareAndSwap(nil, &now)
}

// SettlesFail is for how long settles have failed; 0: the last went through.
func (s *Tiers) SettlesFail() time.Duration {
	if since := s.unstored.Load(); since != nil {
		return time.Since(*since)
	}
	return 0
}

// ColdUp reports whether the cold tier is there: one that can be read only is not.
func (s *Tiers) ColdUp() bool {
	return s.isRead.Load() && s.unstored.Load() == nil && s.Fault.Load() == nil
}

// WarmLost notes that the warm tier failed.
func (s *Tiers) WarmLost() {
	s.WarmAnswers.Store(false)
	s.warm.Store(warmAway)
}

// WarmFilled notes that the warm tier is filled, and reports whether it was not.
func (s *Tiers) WarmFilled() (first bool) { return s.warm.Swap(warmFilled) != warmFilled }

// WarmAway reports whether the warm tier failed, and has not been filled since.
func (s *Tiers) WarmAway() bool { return s.warm.Load() == warmAway }

// warmUp reports whether the warm tier has not failed since it was last filled; before the
// start has come to it, nothing is up.
func (s *Tiers) warmUp() bool { return !s.WarmAway() && (s.WarmAnswers.Load() || s.ColdUp()) }

// Tiers reports which of the tiers are up, by name. A warm tier that failed is up again when
// it has been filled.
func (r *Reader) Tiers() map[string]bool {
	return map[string]bool{"cold": r.cfg.Tiers.ColdUp(), "warm": r.cfg.Tiers.warmUp()}
}

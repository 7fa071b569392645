package inspect

import (
	"fmt"
	"time"

	"xtimer/engine"
)

// Warning is a finding with a stable code.
type Warning struct{ Code, Detail string }

// Warnings are what is amiss although this node serves and fires.
func (r *Reader) Warnings() []Warning {
	var ws []Warning
	for _, of := range [...]func() (Warning, bool){r.warmWarning, r.clockWarning, r.lateWarning} {
		if w, ok := of(); ok {
			ws = append(ws, w)
		}
	}
	return ws
}

// warmWarning says that the warm tier is away, if it is. The cause is in the log only:
// whoever asks may have no token, and a cause names hosts.
func (r *Reader) warmWarning() (w Warning, ok bool) {
	if r.cfg.Tiers.warmUp() {
		return w, false
	}
	return Warning{"warm_tier_away", "the warm tier is unavailable, or not filled again yet: coming dues are read from the cold tier; the log states the cause"}, true
}

// behindLimit is how far (ms) the clock may be behind the watermark without a warning.
const behindLimit = minute

// ClockBehind is how far the clock is behind the last due that was finished, when that is
// more than a minute and ResetClock was not called since; else 0. Timers that were made
// before the clock was set back rest for as long.
func (r *Reader) ClockBehind() time.Duration {
	_, w := r.memory.Watermarks()
	behind := w - r.now()
	if behind <= behindLimit || w <= r.memory.ClockReset.Load() {
		return 0
	}
	return time.Duration(behind) * time.Millisecond
}

// clockWarning says that the clock is behind, if it is.
func (r *Reader) clockWarning() (w Warning, ok bool) {
	behind := r.ClockBehind()
	if behind == 0 {
		return w, false
	}
	until := engine.FormatInstant(r.now() + behind.Milliseconds())
	return Warning{"clock_behind", fmt.Sprintf(
		"the clock was set back and is %v behind the last finished due: existing timers are not called until %s; "+
			"if the former reading of the clock was wrong, run xtimer clock reset", behind.Round(time.Second), until,
	)}, true
}

// lateWarning says that lanes are late, if any is.
func (r *Reader) lateWarning() (w Warning, ok bool) {
	now := r.now()
	lanes, sum := r.overdue.late(now)
	if lanes == 0 {
		return w, false
	}
	return Warning{"targets_late", fmt.Sprintf(
		"%d tasks of %d targets are overdue, the oldest for %v: they wait for calls to these targets",
		sum.tasks, lanes, (time.Duration(now-sum.oldest) * time.Millisecond).Round(time.Second),
	)}, true
}

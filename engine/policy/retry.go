package policy

import (
	"math"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
)

// Next is what follows an outcome.
type Next struct {
	Status    engine.TaskStatus
	Reason    string
	NotBefore int64 // of the next attempt, when Status is Retrying
}

// AfterAttempt decides what follows the outcome of the task's last attempt. gone is
// the reason why its generation has ended, "" while it is in force: a task that
// ran into a change is not repeated.
func AfterAttempt(d *engine.Timer, t *engine.Task, out *engine.Outcome, now int64, gone string) Next {
	switch {
	case out.Class == engine.ClassOK:
		return Next{Status: engine.Succeeded}
	case out.Class == engine.ClassRejected:
		return Next{Status: engine.Failed, Reason: engine.ReasonRejected}
	case d.Delivery == engine.AtMostOnce && out.Class == engine.ClassRetry:
		return Next{Status: engine.Failed, Reason: engine.ReasonRejected}
	case d.Delivery == engine.AtMostOnce && out.Class == engine.ClassUnknown:
		return Next{Status: engine.Unknown, Reason: engine.ReasonMayHaveBeen}
	case gone != "":
		return Next{Status: engine.Cancelled, Reason: gone}
	}
	n := t.LastAttempt() - t.Base
	if n >= d.Retry.MaxAttempts {
		return Next{Status: engine.Dead, Reason: engine.ReasonAttempts}
	}
	wait := backoff(&d.Retry, t.Key, t.LastAttempt(), n)
	if out.RetryAfter > 0 {
		wait = max(min(out.RetryAfter, d.Retry.MaxBackoff), wait)
	}
	at := now + max(wait.Milliseconds(), 1)
	if at-t.Since > d.Retry.MaxAge.Milliseconds()+stood(t) {
		return Next{Status: engine.Dead, Reason: engine.ReasonAge}
	}
	return Next{Status: engine.Retrying, NotBefore: at}
}

// BeforeAttempt decides whether an attempt of the task may start now; if not, v is its
// end. begun: an attempt is known to have begun whose end nobody knows; it is made again,
// as at least once promises.
//
// A first attempt is stale when the task has waited for longer than stale_after or
// max_age. A task waits from its due on; one that was asked for later (an instant that is
// past, a run or a redrive by hand, an enable that catches up) from then on. What a start
// or a step of the clock found, at the instant found, waits for max_age from then on:
// misfire.window has decided that it is called.
func BeforeAttempt(d *engine.Timer, t *engine.Task, begun bool, found, now int64) (v Next, ok bool) {
	maxAge := d.Retry.MaxAge.Milliseconds() + stood(t)
	if len(t.Attempts) > t.Base {
		return Next{Status: engine.Dead, Reason: engine.ReasonAge}, now-t.Since <= maxAge
	}
	v = Next{Status: engine.Skipped, Reason: engine.ReasonStale}
	if len(t.Attempts) > 0 {
		v.Status = engine.Dead // it was called before, and can be retried by hand
	}
	return v, begun || max(t.Since, d.ValidFrom) >= staleBefore(d, maxAge, found, now)
}

// stood is for how long (ms) max_age stood still: somebody has paused the task, or its
// target failed.
func stood(t *engine.Task) (ms int64) {
	for i := range t.Holds {
		if h := &t.Holds[i]; h.By == "pause" || h.By == "breaker" {
			ms += h.Took.Milliseconds()
		}
	}
	return ms
}

// MissedShot reports whether the due of a one-shot timer, which waited in a row when the
// process started, was found later than misfire.window allows. Its row is judged before
// its first attempt and not by the start: a start that read the definitions of a million
// rows was ready after 23 s, where it now takes 1 s.
func MissedShot(d *engine.Timer, t *engine.Task, started, now int64) bool {
	first := t.Origin == engine.FromSchedule && len(t.Attempts) == 0 && len(t.Holds) == 0
	return first && d.Schedule.OneShot() && d.ValidFrom <= started && started <= now &&
		started-t.Key.Due > max(MisfireAfter, d.Misfire.Window.Milliseconds())
}

// StaleBefore is the instant before which no task may have begun to wait whose first
// attempt is to start now; see BeforeAttempt.
func StaleBefore(d *engine.Timer, found, now int64) (before int64) {
	return staleBefore(d, d.Retry.MaxAge.Milliseconds(), found, now)
}

func staleBefore(d *engine.Timer, maxAge, found, now int64) (before int64) {
	if old := now - maxAge; found < old {
		before = old
	}
	if d.StaleAfter > 0 {
		before = max(before, now-d.StaleAfter.Milliseconds())
	}
	return before
}

// backoff is the wait after the n-th attempt in a row (n ≥ 1): backoff ·
// multiplier^(n−1), at most max_backoff, spread by ± jitter. The spread is a
// function of key and attempt number: a replay waits the same.
func backoff(r *engine.Retry, k engine.Key, attempt, n int) time.Duration {
	w := float64(r.Backoff) * math.Pow(r.Multiplier, float64(n-1))
	w = min(w, float64(r.MaxBackoff))
	if r.Jitter > 0 {
		u := float64(plan.Scatter(uint64(k.Timer), uint64(k.Due)+uint64(attempt))>>11) / (1 << 53)
		w *= 1 + r.Jitter*(2*u-1)
	}
	return time.Duration(min(w, float64(r.MaxBackoff)))
}

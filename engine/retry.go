package engine

import (
	"math"
	"time"
)

// verdict is what follows an outcome.
type verdict struct {
	status    TaskStatus
	reason    string
	notBefore int64 // of the next attempt, when status is Retrying
}

// judge decides what follows the outcome of the task's last attempt. gone is
// the reason why its generation has ended, "" while it is in force: a task that
// ran into a change is not repeated.
func judge(d *Timer, t *Task, out *Outcome, now int64, gone string) verdict {
	switch {
	case out.Class == ClassOK:
		return verdict{status: Succeeded}
	case out.Class == ClassRejected:
		return verdict{status: Failed, reason: ReasonRejected}
	case d.Delivery == AtMostOnce && out.Class == ClassRetry:
		return verdict{status: Failed, reason: ReasonRejected}
	case d.Delivery == AtMostOnce && out.Class == ClassUnknown:
		return verdict{status: Unknown, reason: ReasonMayHaveBeen}
	case gone != "":
		return verdict{status: Cancelled, reason: gone}
	}
	n := t.LastAttempt() - t.Base
	if n >= d.Retry.MaxAttempts {
		return verdict{status: Dead, reason: ReasonAttempts}
	}
	wait := backoff(&d.Retry, t.Key, t.LastAttempt(), n)
	if out.RetryAfter > 0 {
		wait = max(min(out.RetryAfter, d.Retry.MaxBackoff), wait)
	}
	at := now + max(wait.Milliseconds(), 1)
	if at-t.Since > d.Retry.MaxAge.Milliseconds() {
		return verdict{status: Dead, reason: ReasonAge}
	}
	return verdict{status: Retrying, notBefore: at}
}

// backoff is the wait after the n-th attempt in a row (n ≥ 1): backoff ·
// multiplier^(n−1), at most max_backoff, spread by ± jitter. The spread is a
// function of key and attempt number: a replay waits the same.
func backoff(r *Retry, k Key, attempt, n int) time.Duration {
	w := float64(r.Backoff) * math.Pow(r.Multiplier, float64(n-1))
	w = min(w, float64(r.MaxBackoff))
	if r.Jitter > 0 {
		u := float64(scatter(uint64(k.Timer), uint64(k.Due)+uint64(attempt))>>11) / (1 << 53)
		w *= 1 + r.Jitter*(2*u-1)
	}
	return time.Duration(min(w, float64(r.MaxBackoff)))
}

func milliTime(ms int64) time.Time { return time.UnixMilli(ms) }

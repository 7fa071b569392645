package policy

import (
	"testing"
	"time"

	"xtimer/engine"
)

// TestBeforeAttempt: how long a task may wait for its first attempt, and for the others.
func TestBeforeAttempt(t *testing.T) {
	const due, s = int64(1_000_000), int64(1000)
	attempts := func(n int) []engine.Attempt { return make([]engine.Attempt, n) }
	for _, x := range []struct {
		name  string
		stale time.Duration // 0: max_age alone, which is a minute
		task  engine.Task
		from  int64 // ValidFrom
		begun bool
		found int64
		now   int64
		want  string
	}{
		{"on time", 5 * time.Second, engine.Task{Since: due}, 0, false, 0, due, ""},
		{"at the limit", 5 * time.Second, engine.Task{Since: due}, 0, false, 0, due + 5*s, ""},
		{"beyond it", 5 * time.Second, engine.Task{Since: due}, 0, false, 0, due + 5*s + 1, "skipped stale"},
		{"at max_age", 0, engine.Task{Since: due}, 0, false, 0, due + 60*s, ""},
		{"beyond max_age", 0, engine.Task{Since: due}, 0, false, 0, due + 60*s + 1, "skipped stale"},
		{"max_age is the shorter one", 24 * time.Hour, engine.Task{Since: due}, 0, false, 0, due + 60*s + 1, "skipped stale"},
		{"found by a start", 0, engine.Task{Since: due}, 0, false, due + 3600*s, due + 3601*s, ""},
		{"found by a start, and waited", 0, engine.Task{Since: due}, 0, false, due + 3600*s, due + 3660*s + 1, "skipped stale"},
		{"found by a start too late for a call", 5 * time.Second, engine.Task{Since: due}, 0, false, due + 3600*s, due + 3600*s, "skipped stale"},
		{"an instant that was past, caught up", 5 * time.Second, engine.Task{Since: due}, due + 3600*s, false, 0, due + 3605*s, ""},
		{"the same, later", 5 * time.Second, engine.Task{Since: due}, due + 3600*s, false, 0, due + 3605*s + 1, "skipped stale"},
		{"under way at a crash", 5 * time.Second, engine.Task{Since: due}, 0, true, 0, due + 3600*s, ""},
		{"a retry does not look at stale_after", 5 * time.Second, engine.Task{Since: due, Attempts: attempts(1)}, 0, false, 0, due + 50*s, ""},
		{"a retry beyond max_age", 0, engine.Task{Since: due, Attempts: attempts(1)}, 0, false, 0, due + 60*s + 1, "dead max_age"},
		{"a redrive", 5 * time.Second, engine.Task{Since: due + 3600*s, Base: 4, Attempts: attempts(4)}, 0, false, 0, due + 3605*s, ""},
		{"a redrive that waited", 5 * time.Second, engine.Task{Since: due + 3600*s, Base: 4, Attempts: attempts(4)}, 0, false, 0, due + 3605*s + 1, "dead stale"},
	} {
		d := &engine.Timer{Definition: engine.NewDefinition(), ValidFrom: x.from}
		d.Retry.MaxAge, d.StaleAfter = time.Minute, x.stale
		v, ok := BeforeAttempt(d, &x.task, x.begun, x.found, x.now)
		got := ""
		if !ok {
			got = v.Status.String() + " " + v.Reason
		}
		if got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}

package inspect

import (
	"context"
	"slices"
	"strings"
	"time"

	"xtimer/engine"
)

// FailureGroup is tasks that failed at the same target in the same way.
type FailureGroup struct {
	Target string       // scheme://host:port of the timer as it is; "": it is gone
	Error  string       // "status 503", "timeout", or the reason of one without an attempt
	First  int64        // the oldest due of them, Unix ms
	Keys   []engine.Key // newest first
}

// maxFailures bounds the tasks that one look at the failures takes, and failuresFor how
// long it searches for them.
const (
	maxFailures = 1000
	failuresFor = 100 * time.Millisecond
)

// Failures groups the newest of the tasks that pages have, as Tasks lists them, the largest
// group first. partial tells that there are older ones.
func (r *Reader) Failures(ctx context.Context, pages func(before engine.Key, limit int) ([]*engine.Task, engine.Key, error)) (groups []FailureGroup, partial bool, err error) {
	var ts []*engine.Task
	before := engine.Key{}
	for begun := time.Now(); len(ts) < maxFailures; {
		page, next, err := pages(before, maxFailures-len(ts))
		if err != nil {
			return nil, false, err
		}
		ts = append(ts, page...)
		before, partial = next, next != engine.Key{}
		if !partial || time.Since(begun) >= failuresFor {
			break
		}
	}
	targets, err := r.targetsOf(ctx, ts)
	if err != nil {
		return nil, false, err
	}
	type kind struct{ target, err string }
	places := map[kind]int{}
	for _, t := range ts {
		k := kind{targets[t.Key.Timer], t.Failure()}
		i, ok := places[k]
		if !ok {
			i = len(groups)
			places[k] = i
			groups = append(groups, FailureGroup{Target: k.target, Error: k.err})
		}
		g := &groups[i]
		g.Keys, g.First = append(g.Keys, t.Key), t.Key.Due
	}
	slices.SortStableFunc(groups, func(a, b FailureGroup) int { return len(b.Keys) - len(a.Keys) })
	return groups, partial, nil
}

// targetsOf finds where the timers of tasks call.
func (r *Reader) targetsOf(ctx context.Context, ts []*engine.Task) (map[engine.TimerID]string, error) {
	targets := map[engine.TimerID]string{}
	var ids []engine.TimerID
	for _, t := range ts {
		if _, ok := targets[t.Key.Timer]; !ok {
			targets[t.Key.Timer] = ""
			ids = append(ids, t.Key.Timer)
		}
	}
	for part := range slices.Chunk(ids, definitionsAtOnce) {
		ts, _, err := r.Definitions(ctx, part)
		if err != nil {
			return nil, err
		}
		for i, t := range ts {
			if t != nil {
				targets[part[i]] = strings.Clone(engine.TargetOf(t.Callback.URL))
			}
		}
	}
	return targets, nil
}

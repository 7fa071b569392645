package fair

// bounds are those of one app and of one target.
type bounds struct{ perApp, perTarget int }

// SetPart says that other queues call the same targets for the same apps: this one has a part
// of PerApp and of PerTarget, at least one call of each. part is asked under the queue's lock,
// so the last of several callers says what there is. Calls that are in flight beyond the part
// may end.
func (q *Queue[T]) SetPart(part func() int, whole int) {
	q.mu.Lock()
	n := part()
	b := bounds{max(q.cfg.PerApp*n/whole, 1), max(q.cfg.PerTarget*n/whole, 1)}
	if b == q.bounds {
		q.mu.Unlock()
		return
	}
	if b.perTarget < q.perTarget {
		for _, t := range q.targets {
			t.most = min(t.most, b.perTarget)
		}
	}
	q.bounds = b
	for _, a := range q.apps {
		q.stand(a)
	}
	q.handOut(q.now())
}

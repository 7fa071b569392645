package batch

import (
	"math/rand/v2"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/resident"
)

// Config of a Runner: how the scheduler does what it also does for a task alone.
type Config struct {
	Memory *resident.Memory
	Now    func() time.Time
	// Ready gets what the call of a task needs. ReadyToo does not wait for room; again: the
	// task is to be queued again.
	Ready    func(*resident.Task) (b resident.Body, ok bool)
	ReadyToo func(*resident.Task) (b resident.Body, ok, again bool)
	// Note notes on the disk that the attempts of at_most_once tasks begin, with one sync, and
	// returns those that may go on.
	Note func([]*resident.Attempt) []*resident.Attempt
	Call func(*engine.Call) engine.Outcome
	End  func(a *resident.Attempt, began time.Time, out engine.Outcome)
}

// Runner makes calls of many tasks.
type Runner struct{ Config }

// member is a task whose attempt has begun.
type member struct {
	*resident.Attempt
	end    int       // of the members up to it, in bytes
	from   int64     // when it should have begun, Unix ms
	queued time.Time // when it left the wheel
	body   resident.Body
}

// Made is a call of many tasks.
type Made struct {
	engine.Outcome
	Size     int                           // of how many tasks it was; 0: it was not made
	Failures map[engine.Key]engine.Outcome // of the tasks that its answer named as failures
	Waited   time.Duration                 // for its departure
}

// Run makes one call of a task and of others that wait in its lane:
//
//	take the others → begin each, noted in the journal → one call → end each
func (r *Runner) Run(first *resident.Task, spec *engine.Batch, more *fair.More[*resident.Task]) (made Made) {
	members := r.gather(first, spec, more)
	defer func() {
		for i := range members {
			members[i].body.Release()
		}
	}()
	began := r.Now()
	attempts := make([]*resident.Attempt, len(members))
	for i := range members {
		attempts[i] = members[i].Attempt
	}
	if len(members) > 0 && members[0].Timer.Delivery == engine.AtMostOnce {
		attempts = r.Note(attempts)
		began = r.Now()
	}
	if len(attempts) == 0 {
		return made
	}
	b := &engine.BatchCall{ID: max(rand.Uint64(), 1), Calls: make([]*engine.Call, len(attempts))}
	for i, a := range attempts {
		b.Calls[i] = &a.Call
	}
	c := *b.Calls[0]
	g := &gate{b: b, memory: r.Memory, attempts: attempts}
	c.Gate, c.Batch = g, b
	out := r.Call(&c)
	g.leaves.End()
	b.Calls = slices.DeleteFunc(b.Calls, func(c *engine.Call) bool { return c.Gate.(*resident.Attempt).Over })
	size := len(b.Calls)
	for i := range members {
		o, a := out, members[i].Attempt
		if f, ok := b.Failures[a.Key]; ok {
			o.Class, o.Code, o.ErrorClass, o.Response, o.RetryAfter = f.Class, f.Code, f.ErrorClass, f.Response, f.RetryAfter
		}
		o.Phases.Wheel = max(0, members[i].queued.Sub(time.UnixMilli(members[i].from)))
		o.Phases.Hold = a.Held + g.leaves.Waited
		o.Phases.Queue += max(0, began.Sub(members[i].queued)-a.Held)
		o.Batch, o.BatchSize = b.ID, size
		r.End(a, began, o)
	}
	return Made{out, size, b.Failures, g.leaves.Waited}
}

// gather takes the tasks that wait in the lane of the first, as many as the call may have,
// and begins their attempts.
func (r *Runner) gather(first *resident.Task, spec *engine.Batch, more *fair.More[*resident.Task]) (members []member) {
	body, ok := r.Ready(first)
	if !ok {
		return nil
	}
	room := engine.BatchBytes - frameBytes - first.Bytes()
	wait := min(time.UnixMilli(first.Key.Due).Add(spec.Wait).Sub(r.Now()), spec.Wait) // the clock may have been set back
	others := more.Take(spec.Max-1, room, wait)
	var again []*resident.Task
	members, again = r.begin(make([]member, 0, 1+len(others)), again, first, body)
	for _, t := range others {
		body, ok, full := r.ReadyToo(t)
		switch {
		case ok:
			members, again = r.begin(members, again, t, body)
		case full:
			again = append(again, t)
		}
	}
	r.Memory.Enqueue(again)
	return members
}

// frameBytes is what the body of a batch has beside its members.
const frameBytes = 16

// begin begins the attempt of a task and adds it to those that share its call. again are
// tasks that are to be queued.
func (r *Runner) begin(members []member, again []*resident.Task, t *resident.Task, body resident.Body) ([]member, []*resident.Task) {
	a, from, freed := r.Memory.Begin(t, r.Now().UnixMilli(), &body)
	if freed != nil {
		again = append(again, freed)
	}
	if a == nil {
		body.Release()
		return members, again
	}
	end := engine.MemberBytes(a.Timer)
	if n := len(members); n > 0 {
		end += members[n-1].end
	}
	if len(members) > 0 && (end > engine.BatchBytes-frameBytes || !a.Timer.TogetherWith(members[0].Timer)) {
		if t := a.PutBack(); t != nil { // its timer was changed, or another has the number of its class
			again = append(again, t)
		}
		body.Release()
		return members, again
	}
	return append(members, member{a, end, from, time.UnixMicro(t.QueuedAt), body}), again
}

package tiertest

import (
	"errors"
	"fmt"
	"testing"

	"xtimer/engine"
)

// Script makes random steps that are worth making: they meet the same few
// timers, names, dues and keys again and again. Equal draws make equal steps.
type Script struct {
	draw func(label string, n int) int // 0 ≤ draw < n
	now  int64
	// last is the version that stands, by what the tier said; used are the
	// timers that were ever made: an id is never used again.
	last map[engine.TimerID]uint32
	used map[engine.TimerID]bool
}

// Step is one call, the same for every tier.
type Step struct {
	Name string
	// Do makes the call and says how it went.
	Do func(t testing.TB, c engine.Cold) string
}

// NewScript builds a script that draws its choices with draw.
func NewScript(draw func(label string, n int) int) *Script {
	return &Script{draw: draw, now: t0, last: map[engine.TimerID]uint32{}, used: map[engine.TimerID]bool{}}
}

const scriptIDs = 24

// ScriptIDs are the timers that a script touches.
func ScriptIDs() (ids []engine.TimerID) {
	for i := range scriptIDs {
		ids = append(ids, engine.TimerID(i*3+1))
	}
	return ids
}

func (r *Script) id() engine.TimerID { return ScriptIDs()[r.draw("id", scriptIDs)] }

func (r *Script) due() int64 {
	return t0 + int64(r.draw("due", 40)-10)*hour + int64(r.draw("ms", 4))*10
}

func (r *Script) key() engine.Key { return engine.Key{Timer: r.id(), Due: r.due()} }

// Step makes the next step.
func (r *Script) Step() Step {
	r.now += int64(r.draw("pass", 3)) * hour
	switch r.draw("step", 9) {
	case 0, 1:
		return r.create()
	case 2, 3:
		return r.change()
	case 4, 5:
		return r.settle()
	case 6:
		return r.raise()
	case 7:
		if r.draw("rarely", 8) == 0 { // it writes all shards
			return r.take()
		}
		return r.settle()
	}
	return r.sweep()
}

func (r *Script) timer(id engine.TimerID) *engine.Timer {
	t := shot(id, fmt.Sprint("n", r.draw("name", 5)), r.due())
	if r.draw("recurring", 3) == 0 {
		t = recurring(id, t.Name)
		if r.draw("ends", 2) == 0 {
			t.LastDue = r.due()
		}
	}
	if r.draw("nameless", 8) == 0 {
		t.Name = ""
	}
	t.App = fmt.Sprint("app", r.draw("app", 2))
	if t.App == "app1" {
		t.UpdatedBy = "editor"
	}
	t.Status = engine.Status(max(0, r.draw("status", 6)-3))
	t.ValidFrom, t.CreatedAt, t.UpdatedAt = r.now, r.now, r.now
	if r.draw("label", 2) == 0 {
		t.Labels = []engine.Label{{Key: "k", Value: "v"}}
	}
	return t
}

func outcome(a engine.Applied) string {
	out := fmt.Sprintf("err=%v replayed=%v", a.Err, a.Replayed)
	if a.Existing != nil {
		out += fmt.Sprintf(" existing=%x", engine.AppendTimer(nil, a.Existing))
	}
	return out
}

func (r *Script) create() Step {
	var cs []*engine.Change
	for range 1 + r.draw("creates", 4) {
		id := r.id()
		if r.used[id] {
			continue
		}
		c := &engine.Change{Timer: r.timer(id), ID: id, At: r.now}
		if r.draw("once", 3) == 0 {
			c.Once = &engine.Once{App: c.Timer.App, Key: fmt.Sprint(r.draw("key", 3)), Expires: r.now + 5*hour}
			c.Once.Body[0] = byte(r.draw("body", 2))
		}
		if r.draw("owe", 4) == 0 {
			c.Owe = r.owe(1)
		}
		cs = append(cs, c)
	}
	return Step{"create", func(t testing.TB, c engine.Cold) (out string) {
		for i, a := range c.ApplyAll(t.Context(), cs) {
			if out += outcome(a) + "\n"; a.Err == nil && a.Existing == nil {
				r.last[cs[i].ID], r.used[cs[i].ID] = 1, true
			}
		}
		return out
	}}
}

func (r *Script) change() Step {
	id := r.id()
	for range 3 { // rather one that stands
		if r.last[id] == 0 {
			id = r.id()
		}
	}
	was := r.last[id]
	if was == 0 || r.draw("stale", 6) == 0 {
		was++
	}
	c := &engine.Change{ID: id, At: r.now, Was: was}
	if r.draw("delete", 3) > 0 {
		c.Timer = r.timer(id)
		if c.Timer.Version = was + 1; r.draw("same", 4) == 0 {
			c.Timer.Version = was
		}
	}
	for range r.draw("pay", 3) {
		c.Pay = append(c.Pay, r.key())
	}
	c.Owe = r.owe(r.draw("owes", 2))
	for range r.draw("tasks", 2) {
		c.Tasks = append(c.Tasks, r.task())
	}
	return Step{"change", func(t testing.TB, cold engine.Cold) string {
		a, err := cold.Apply(t.Context(), c)
		if !errors.Is(a.Err, err) {
			return fmt.Sprintf("%v, but %v", err, a.Err)
		}
		switch {
		case err != nil || a.Existing != nil:
		case c.Timer == nil:
			r.last[id] = 0
		default:
			r.last[id] = c.Timer.Version
		}
		return outcome(a)
	}}
}

func (r *Script) owe(n int) (rows []engine.Owed) {
	for range n {
		o := engine.Owed{Key: r.key(), Generation: 1, NotBefore: r.due(), Lane: engine.Lane(r.draw("lane", 3))}
		if r.draw("range", 6) == 0 {
			o.To = o.Key.Due + hour
		}
		if r.draw("tried", 2) == 0 {
			o.Task = task(o.Key.Timer, o.Key.Due, engine.Retrying, r.draw("attempts", 3))
		}
		rows = append(rows, o)
	}
	return rows
}

func (r *Script) task() *engine.Task {
	k := r.key()
	return task(k.Timer, k.Due, engine.TaskStatus(r.draw("task status", int(engine.Unknown)+1)), r.draw("attempts", 4))
}

func (r *Script) settle() Step {
	st := &engine.Settlement{Owner: "n", Replayed: r.draw("replayed", 3) == 0}
	for range r.draw("records", 5) {
		st.Tasks = append(st.Tasks, record(r.task()))
	}
	st.Owe = r.owe(r.draw("owes", 3))
	for range r.draw("pay", 3) {
		st.Pay = append(st.Pay, r.key())
	}
	if r.draw("mark", 2) == 0 {
		st.Marks = marks(r.due())
	}
	if r.draw("fence", 10) == 0 {
		st.Marks = append(st.Marks, engine.Mark{Shard: r.draw("shard", 2), Fence: uint64(r.draw("number", 2)), W: r.now})
	}
	return Step{"settle", func(t testing.TB, c engine.Cold) string {
		return fmt.Sprint(c.Settle(t.Context(), st))
	}}
}

func (r *Script) take() Step {
	owner := fmt.Sprint("node", r.draw("owner", 2))
	return Step{"take", func(t testing.TB, c engine.Cold) string {
		shards, newest, err := c.Take(t.Context(), owner)
		return fmt.Sprint(shards, newest, err)
	}}
}

func (r *Script) raise() Step {
	id := r.id()
	b := engine.Bound{ID: id, Version: r.last[id], Due: r.due(), Finished: r.draw("finished", 3) == 0}
	return Step{"raise", func(t testing.TB, c engine.Cold) string {
		return fmt.Sprint(c.Raise(t.Context(), []engine.Bound{b}))
	}}
}

func (r *Script) sweep() Step {
	now, finished, history := r.now, r.now-int64(r.draw("finished before", 20))*hour, r.now-int64(r.draw("history before", 60)-10)*hour
	return Step{"sweep", func(t testing.TB, c engine.Cold) string {
		for range 1000 {
			if more, err := c.Sweep(t.Context(), now, finished, history); !more || err != nil {
				return fmt.Sprint(err)
			}
		}
		return "without an end"
	}}
}

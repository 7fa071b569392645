package simulator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xtimer/engine"
	"xtimer/engine/change"
	"xtimer/engine/inspect"
)

// request is one step that asks for something, and what is known of it.
type request struct {
	Step
	sent, answered         time.Duration // since the run began
	sentWall, answeredWall int64         // Unix ms
	state                  state
	view                   inspect.View
	key                    engine.Key
	deleted                change.DeleteResult
	same                   bool // it changed nothing
	err                    error
}

// state is what is known of a request.
type state uint8

const (
	unknown state = iota // it may have been done, now or later
	done                 // it was acknowledged
	refused              // it was not done, and never will be
)

// reply of the service, written by one goroutine and read after it.
type reply struct {
	view    inspect.View
	key     engine.Key
	deleted change.DeleteResult
	same    bool
	err     error
}

var errDown = errors.New("nobody listens")

// ask makes a request, in its turn among those of its timer.
func (m *machine) ask(s Step, l *life) {
	before := m.last[s.Name]
	over := make(chan struct{})
	m.last[s.Name] = over
	m.asking.Go(func() {
		defer close(over)
		if before != nil {
			<-before
		}
		m.request(s)
	})
}

func (m *machine) request(s Step) {
	m.mu.Lock()
	l := m.life
	r := &request{Step: s, sent: m.since(), sentWall: m.wall().UnixMilli()}
	up := l != nil && l.up && !l.over
	m.mu.Unlock()
	if !up {
		r.state, r.err = refused, errDown
		m.answered(r)
		return
	}
	got := make(chan reply, 1)
	ctx, cancel := context.WithCancel(context.Background()) // what a dead engine is asked never ends
	defer cancel()
	m.asking.Go(func() { got <- m.perform(ctx, l, s) })
	select {
	case p := <-got:
		m.mu.Lock()
		over := l.over
		m.mu.Unlock()
		if over {
			r.err = errors.New("the connection broke")
			break
		}
		r.view, r.key, r.deleted, r.same, r.err = p.view, p.key, p.deleted, p.same, p.err
		var f *engine.Fault
		switch {
		case p.err == nil:
			r.state = done
		case errors.As(p.err, &f) && f.Kind != engine.FaultUnavailable:
			r.state = refused
		}
	case <-l.gone:
		r.err = errors.New("the connection broke")
	}
	m.answered(r)
}

func (m *machine) answered(r *request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.answered, r.answeredWall = m.since(), m.wall().UnixMilli()
	m.asked[r.Name] = append(m.asked[r.Name], r)
	id, version := engine.TimerID(0), uint32(0)
	if r.view.Timer != nil {
		id, version = r.view.ID, r.view.Version
	}
	m.tell("  %s %s: %s %s v%d %v %s%s", r.Kind, r.Name, [...]string{"UNKNOWN", "done", "refused"}[r.state], id, version, r.same, r.deleted, errText(r.err))
}

// about reports whether an instant lies between question and answer, or a little
// later, whichever way the clock went.
func (r *request) about(instant int64) bool {
	return min(r.sentWall, r.answeredWall) <= instant && instant <= max(r.sentWall, r.answeredWall)+5000
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return " " + err.Error()
}

// perform does what a step asks for.
func (m *machine) perform(ctx context.Context, l *life, s Step) (p reply) {
	e := l.e
	switch s.Kind {
	case Create:
		c := e.Create(ctx, s.Definition, nil)
		return reply{view: c.View, same: c.Existed, err: c.Err}
	case Put:
		v, result, err := e.Put(ctx, s.Definition, 0)
		return reply{view: v, same: result == change.PutUnchanged, err: err}
	case Backup:
		dir := fmt.Sprintf("/backup/%d", s.Draw)
		if err := l.wal.Backup(ctx, dir+"/journal"); err != nil {
			return reply{err: err}
		}
		return reply{err: l.cold.Backup(ctx, dir+"/cold")}
	case Sweep:
		now := m.now().UnixMilli()
		_, err := (&cold{l.cold, m, l}).Sweep(ctx, now, now-(24*time.Hour).Milliseconds(), now-(24*time.Hour).Milliseconds())
		return reply{err: err}
	case SetLimit, PauseFlow, ResumeFlow, RemoveLimit:
		return reply{err: m.writeRule(ctx, l, s)}
	}
	v, err := e.TimerByName(ctx, "app", s.Name)
	if err != nil {
		return reply{err: err}
	}
	id := v.ID
	p.view = v
	wall := func() int64 {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.wallOf(l).UnixMilli()
	}
	asked, askedWall := m.since(), wall()
	unchanged := func(version uint32) bool { // or changed by one before it that was in doubt
		return p.err == nil && (p.view.Version == version || p.view.UpdatedAt < m.earliest(asked, min(askedWall, wall()), m.since()))
	}
	switch s.Kind {
	case Patch:
		version := v.Version
		p.view, p.err = e.Replace(ctx, id, 0, func(d engine.Definition) (engine.Definition, error) {
			n := d
			if s.Draw%2 == 0 {
				n.Callback = s.Definition.Callback
			} else {
				n.Schedule = s.Definition.Schedule
			}
			return n, nil
		})
		p.same = unchanged(version)
	case Delete:
		p.deleted, p.err = e.Delete(ctx, id, 0)
	case Disable:
		until := int64(0)
		if s.Until > 0 {
			until = m.now().Add(s.Until).UnixMilli()
		}
		version := v.Version
		p.view, p.err = e.Disable(ctx, id, 0, "", until)
		p.same = unchanged(version)
	case Enable:
		version := v.Version
		p.view, p.err = e.Enable(ctx, id, 0, s.CatchUp)
		p.same = unchanged(version)
	case Run:
		p.key, p.err = e.RunNow(ctx, id, 0)
	case Retry:
		ts, _, err := e.Tasks(ctx, engine.TaskFilter{Timer: id, Statuses: []engine.TaskStatus{engine.Dead, engine.Failed, engine.Unknown}}, engine.Key{}, 10)
		if err != nil {
			return reply{err: err}
		}
		if len(ts) == 0 {
			return reply{err: engine.ErrNotFound}
		}
		p.key = ts[s.Draw%uint64(len(ts))].Key
		p.err = e.Redrive(ctx, p.key)
	}
	return p
}

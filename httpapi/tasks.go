package httpapi

import (
	"cmp"
	"time"

	"xtimer/engine"
	"xtimer/httpapi/access"
	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

// listTasks is GET /v1/tasks.
func (s *Server) listTasks(r *request) (reply, error) {
	f, badFilter := r.taskFilter(r.query)
	after, limit, err := s.page(r)
	if err := problem.Together(badFilter, err); err != nil {
		return reply{}, err
	}
	var before engine.Key
	if after != "" {
		if before, err = engine.ParseKey(after); err != nil {
			return reply{}, errBadCursor
		}
	}
	if mine, err := s.owns(r, f.Timer); err != nil || !mine {
		return reply{fixed: noTasks}, err
	}
	ts, last, err := s.e.Tasks(r.ctx, f, before, limit)
	for begun := time.Now(); err == nil && f.Searches() && len(ts) < limit && last != (engine.Key{}) && time.Since(begun) < searchTime; {
		var more []*engine.Task
		more, last, err = s.e.Tasks(r.ctx, f, last, limit-len(ts))
		ts = append(ts, more...)
	}
	if err != nil {
		return reply{}, err
	}
	next := ""
	if last != (engine.Key{}) {
		next = last.String()
	}
	return reply{body: renderFunc(func(b []byte) []byte {
		b = append(b, `{"tasks":[`...)
		for i, t := range ts {
			if b = wire.AppendTask(wire.Comma(b), t); len(b) > pageBytes && i+1 < len(ts) {
				next = t.Key.String()
				break
			}
		}
		return append(s.cursorMember(append(b, ']'), r, next), '}')
	})}, nil
}

var noTasks = []byte(`{"tasks":[]}`)

// task finds the task of the path; another app's is not found, and not looked for.
func (s *Server) task(r *request) (*engine.Task, error) {
	k, err := engine.ParseKey(r.vars[0])
	if err != nil {
		return nil, engine.ErrNotFound
	}
	if mine, err := s.owns(r, k.Timer); err != nil || !mine {
		return nil, cmp.Or(err, error(engine.ErrNotFound))
	}
	return s.e.Task(r.ctx, k)
}

// owns reports whether the request may see the tasks of a timer (0: of any, which its
// app limits). Those of another app are not even looked for: the time that takes would
// tell of them. Those of a deleted timer can be seen while a version of it is kept, which
// is as long as history.
func (s *Server) owns(r *request, id engine.TimerID) (bool, error) {
	if id == 0 || r.Grant.App == access.AllApps {
		return true, nil
	}
	app, err := s.e.AppOf(r.ctx, id)
	if isFault(err, engine.FaultNotFound) {
		return false, nil
	}
	return r.MayUse(app), err
}

// getTask is GET /v1/tasks/{key}.
func (s *Server) getTask(r *request) (reply, error) {
	t, err := s.task(r)
	if err != nil {
		return reply{}, err
	}
	return reply{body: taskAnswer{t}}, nil
}

// retryTask is POST /v1/tasks/{key}/retry.
func (s *Server) retryTask(r *request) (reply, error) {
	if err := readOptional(r, new(struct{}), nil); err != nil {
		return reply{}, err
	}
	t, err := s.task(r)
	if err != nil {
		return reply{}, err
	}
	if err := s.e.Redrive(r.ctx, t.Key); err != nil {
		return reply{}, err
	}
	return keyReply(t.Key), nil
}

// dismissTask is POST /v1/tasks/{key}/dismiss.
func (s *Server) dismissTask(r *request) (reply, error) {
	if err := readOptional(r, new(struct{}), nil); err != nil {
		return reply{}, err
	}
	t, err := s.task(r)
	if err != nil {
		return reply{}, err
	}
	if t, err = s.e.Dismiss(r.ctx, t.Key); err != nil {
		return reply{}, err
	}
	return reply{body: taskAnswer{t}}, nil
}

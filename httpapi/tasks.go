package httpapi

import (
	"xtimer/engine"
)

// listTasks is GET /v1/tasks.
func (s *Server) listTasks(r *request) (reply, error) {
	f, err := r.taskFilter(r.query)
	if err != nil {
		return reply{}, err
	}
	after, limit, err := r.page()
	if err != nil {
		return reply{}, err
	}
	var before engine.Key
	if after != "" {
		if before, err = engine.ParseKey(after); err != nil {
			return reply{}, errBadCursor
		}
	}
	ts, last, err := s.e.Tasks(r.ctx, f, before, limit)
	if err != nil {
		return reply{}, err
	}
	next := ""
	if last != (engine.Key{}) {
		next = last.String()
	}
	return reply{body: renderFunc(func(b []byte) []byte {
		b = append(b, `{"tasks":[`...)
		for _, t := range ts {
			b = appendTask(comma(b), t)
		}
		return append(cursorMember(append(b, ']'), next), '}')
	})}, nil
}

// task finds the task of the path; another app's is not found.
func (s *Server) task(r *request) (*engine.Task, error) {
	k, err := engine.ParseKey(r.vars[0])
	if err != nil {
		return nil, errNoTask
	}
	t, err := s.e.Task(r.ctx, k)
	if err != nil {
		return nil, err
	}
	if !r.mayUse(t.App) {
		return nil, errNoTask
	}
	return t, nil
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

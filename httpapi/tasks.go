package httpapi

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/inspect"
	"xtimer/httpapi/access"
	"xtimer/httpapi/nodes"
	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

// listTasks is GET /v1/tasks.
func (s *Server) listTasks(r *request) (reply, error) {
	f, badFilter := r.taskFilter(r.query)
	if r.ofNode {
		return s.newestTasks(r, &f, badFilter)
	}
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
	ts, last, whole, err := s.tasks(r, &f, before, limit)
	for begun := time.Now(); err == nil && f.Searches() && len(ts) < limit && last != (engine.Key{}) && time.Since(begun) < searchTime; {
		var more []*engine.Task
		var all bool
		more, last, all, err = s.tasks(r, &f, last, limit-len(ts))
		ts, whole = append(ts, more...), whole && all
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
		if b = s.cursorMember(append(b, ']'), r, next); !whole {
			b = wire.BoolMember(b, "partial", true)
		}
		return append(b, '}')
	})}, nil
}

// tasks is a page of tasks of all nodes; not whole: a node did not say what it has in memory.
func (s *Server) tasks(r *request, f *engine.TaskFilter, before engine.Key, limit int) (ts []*engine.Task, next engine.Key, whole bool, err error) {
	whole = true
	var elsewhere []inspect.Newest
	if s.cfg.Cluster != nil {
		var of []nodes.Node
		if of = s.others(); f.Timer != 0 {
			n, ok := s.owner(f.Timer.Shard())
			if of = []nodes.Node{n}; !ok {
				of, whole = nil, s.e.Owned().Has(f.Timer.Shard())
			}
		}
		part := func(q *nodes.Request) {
			q.Header[nodes.PartHeader] = []string{before.String() + ";" + strconv.Itoa(limit)}
		}
		for _, a := range s.askEach(r, of, part) {
			n, err := readNewest(a)
			if err != nil {
				whole = false
				s.log.Warn("a list of tasks lacks those in the memory of a node", "node", a.node.Name, "error", err)
			}
			elsewhere = append(elsewhere, n)
		}
	}
	ts, next, err = s.e.Tasks(r.ctx, *f, before, limit, elsewhere...)
	return ts, next, whole, err
}

// newestTasks tells another node what this one has in memory.
func (s *Server) newestTasks(r *request, f *engine.TaskFilter, badFilter error) (reply, error) {
	from, n, _ := strings.Cut(string(r.http.Request.Header.Peek(nodes.PartHeader)), ";")
	limit, err := strconv.Atoi(n)
	if badFilter != nil || err != nil || limit < 1 || limit > maxLimit {
		return reply{}, cmp.Or(badFilter, error(errBadPart))
	}
	var before engine.Key
	if from != (engine.Key{}).String() {
		if before, err = engine.ParseKey(from); err != nil {
			return reply{}, errBadPart
		}
	}
	newest := s.e.Newest(f, before, limit)
	b := buffers.Get().(*[]byte)
	*b = newest.Next.Append((*b)[:0])
	for _, t := range newest.Tasks {
		task := engine.EncodeTask(t)
		*b = binary.BigEndian.AppendUint32(append(*b, '\n'), uint32(len(task)))
		*b = append(*b, task...)
	}
	return reply{made: b, kind: "application/octet-stream"}, nil
}

// readNewest reads what newestTasks of another node has rendered.
func readNewest(a nodeAnswer) (n inspect.Newest, err error) {
	if a.err != nil || a.Status != fasthttp.StatusOK {
		return n, cmp.Or(a.err, readProblem(a))
	}
	next, rest, more := bytes.Cut(a.Body, []byte{'\n'})
	if string(next) != (engine.Key{}).String() {
		if n.Next, err = engine.ParseKey(string(next)); err != nil {
			return n, err
		}
	}
	for more {
		if len(rest) < 4 || uint64(len(rest)-4) < uint64(binary.BigEndian.Uint32(rest)) {
			return n, errShortAnswer
		}
		end := 4 + int(binary.BigEndian.Uint32(rest))
		t, err := engine.DecodeTask(rest[4:end])
		if err != nil {
			return n, err
		}
		n.Tasks = append(n.Tasks, t)
		if rest = rest[end:]; len(rest) > 0 {
			rest = rest[1:]
			continue
		}
		break
	}
	return n, nil
}

var errShortAnswer = errors.New("the answer of the node ends too soon")

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

// learn is POST /v1/internal/results: another node tells what became of a call that was under way
// when that node gave the shard of its task.
func (s *Server) learn(r *request) (reply, error) {
	return r.answerMessage(func(b []byte) ([]byte, error) { return s.e.Learn(r.ctx, b) })
}

package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"time"
)

const (
	// silence is how long a stream may say nothing before it counts as broken;
	// the server's heartbeat comes every 15 s.
	silence = 45 * time.Second
	// A broken stream is opened again after a wait that doubles up to this.
	longestPause = 2 * time.Second
)

// Gap is an error in a stream that goes on: tasks that ended from From to To may be
// missing in it. They are in Tasks, as far as history has them.
type Gap struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// DueBefore bounds them further, to tasks due before it; zero: whatever their dues.
	DueBefore time.Time `json:"due_before,omitzero"`
	// Count is how many are missing at most; 0: not known.
	Count int64 `json:"count,omitempty"`
}

func (g *Gap) Error() string {
	tasks := "tasks"
	if g.Count > 0 {
		tasks = fmt.Sprintf("up to %d tasks", g.Count)
	}
	if !g.DueBefore.IsZero() {
		tasks += " due before " + instantText(g.DueBefore)
	}
	return fmt.Sprintf("%s that ended from %s to %s may be missing in the stream", tasks, instantText(g.From), instantText(g.To))
}

func instantText(t time.Time) string {
	text, _ := instant(t).MarshalText()
	return string(text)
}

// Break is an error in a stream that goes on: the connection broke, and what ends
// meanwhile follows when it is back.
type Break struct{ Err error } // nil: it is back

func (b *Break) Error() string {
	if b.Err != nil {
		return fmt.Sprintf("the stream of tasks broke: %v", b.Err)
	}
	return "the stream of tasks is back"
}

func (b *Break) Unwrap() error { return b.Err }

// Stream yields tasks as they end. A stream that breaks is opened again, as often as it
// takes, and goes on with what ended meanwhile: then it yields a *Break with what broke
// it, and another when it is back. What the server cannot tell any more it yields as a
// *Gap. After a restart of the server some tasks may come twice. Any other error is the
// last thing that Stream yields: ctx ended, or the server refuses.
func (c *Client) Stream(ctx context.Context, f TaskFilter) iter.Seq2[Task, error] {
	return func(yield func(Task, error) bool) {
		s := stream{c: c, query: f.query(), yield: yield}
		for pause := firstWait; ; pause = min(2*pause, longestPause) {
			err := s.read(ctx)
			var problem *Error
			switch {
			case s.left:
				return
			case ctx.Err() != nil:
				yield(Task{}, ctx.Err())
				return
			case errors.As(err, &problem) && problem.Status != http.StatusTooManyRequests && problem.Status < 500:
				yield(Task{}, err)
				return
			}
			if s.opened {
				pause = firstWait
			}
			if !s.broken && !yield(Task{}, &Break{Err: err}) {
				return
			}
			s.opened, s.broken = false, true
			_ = sleep(ctx, pause/2+rand.N(pause/2))
		}
	}
}

// stream is one Stream, over all its connections.
type stream struct {
	c      *Client
	query  map[string][]string
	yield  func(Task, error) bool
	opened bool   // the last read got as far as an answer
	broken bool   // and nobody was told yet that it is back
	last   string // the ID of the last event
	left   bool   // the reader has had enough
}

// read opens the stream and reads it until it breaks, or the reader has had
// enough.
func (s *stream) read(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(silence, func() { cancel(fmt.Errorf("nothing came for %v", silence)) })
	defer quiet.Stop()

	q := request{method: http.MethodGet, path: "/v1/tasks/stream", query: s.query, header: http.Header{"Accept": {"text/event-stream"}}}
	if s.last != "" {
		q.header.Set("Last-Event-ID", s.last)
	}
	resp, err := s.c.open(ctx, &q, nil)
	if err != nil {
		return cause(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return readError(resp)
	}
	s.opened = true
	if s.broken {
		s.broken = false
		if !s.say(Task{}, &Break{}) {
			return nil
		}
	}

	var kind, data, id []byte
	for r := bufio.NewReaderSize(resp.Body, 64<<10); ; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return cause(ctx, fmt.Errorf("cannot read the stream: %w", err))
		}
		quiet.Reset(silence)
		line = bytes.TrimRight(line, "\r\n")
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0:
			if len(id) > 0 { // of an event that has come whole
				s.last = string(id)
			}
			if !s.event(kind, data) {
				return nil
			}
			kind, data, id = nil, nil, nil
		case string(name) == "event":
			kind = value
		case string(name) == "id":
			id = value
		case string(name) == "data":
			data = append(data, value...)
		}
	}
}

// cause is why ctx ended, if that is what an error comes from.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

// event hands an event to the reader; false: it has had enough.
func (s *stream) event(kind, data []byte) bool {
	switch string(kind) {
	case "task":
		var t Task
		err := json.Unmarshal(data, &t)
		if err != nil {
			err = &Break{Err: fmt.Errorf("cannot read a task of the stream: %w", err)}
		}
		return s.say(t, err)
	case "gap":
		g := new(Gap)
		if err := json.Unmarshal(data, g); err == nil {
			return s.say(Task{}, g)
		}
	}
	return true
}

func (s *stream) say(t Task, err error) bool {
	s.left = !s.yield(t, err)
	return !s.left
}

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

// Gap is an error in a stream that goes on: tasks may have ended that it does
// not show. They are in Tasks.
type Gap struct {
	// Dropped counts the tasks that this reader was too slow for, since the
	// stream was opened; 0: the stream broke.
	Dropped int64
	// Err is what broke it, when Dropped is 0; nil: it is back.
	Err error
}

func (g *Gap) Error() string {
	switch {
	case g.Dropped > 0:
		return fmt.Sprintf("the reader was too slow for %d tasks", g.Dropped)
	case g.Err != nil:
		return fmt.Sprintf("the stream of tasks broke: %v", g.Err)
	}
	return "the stream of tasks is back"
}

func (g *Gap) Unwrap() error { return g.Err }

// Stream yields tasks as they end. A stream that breaks is opened again, as
// often as it takes: then it yields a *Gap with what broke it, and another when
// it is back. Any other error is the last thing it yields: ctx ended, or the
// server refuses.
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
			if !s.broken && !yield(Task{}, &Gap{Err: err}) {
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
	opened bool // the last read got as far as an answer
	broken bool // and nobody was told yet that it is back
	left   bool // the reader has had enough
}

// read opens the stream and reads it until it breaks, or the reader has had
// enough.
func (s *stream) read(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := time.AfterFunc(silence, func() { cancel(fmt.Errorf("nothing came for %v", silence)) })
	defer quiet.Stop()

	q := request{method: http.MethodGet, path: "/v1/tasks/stream", query: s.query, header: http.Header{"Accept": {"text/event-stream"}}}
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
		if !s.say(Task{}, &Gap{}) {
			return nil
		}
	}

	var kind, data []byte
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
			if !s.event(kind, data) {
				return nil
			}
			kind, data = nil, nil
		case string(name) == "event":
			kind = value
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
			err = &Gap{Err: fmt.Errorf("cannot read a task of the stream: %w", err)}
		}
		return s.say(t, err)
	case "dropped":
		var n struct{ Count int64 }
		if json.Unmarshal(data, &n) == nil && n.Count > 0 {
			return s.say(Task{}, &Gap{Dropped: n.Count})
		}
	}
	return true
}

func (s *stream) say(t Task, err error) bool {
	s.left = !s.yield(t, err)
	return !s.left
}

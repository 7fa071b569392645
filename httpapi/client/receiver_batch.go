package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync"
	"time"
)

// batchAtOnce is how many tasks of a batch are handled at once where nothing else is said.
const batchAtOnce = 16

// member is a task of a batch as it is sent.
type member struct {
	Task        string          `json:"task"`
	Name        string          `json:"name"`
	Attempt     int             `json:"attempt"`
	Redelivered bool            `json:"redelivered"`
	Body        json.RawMessage `json:"body"`
	BodyBase64  []byte          `json:"body_base64"`
}

// batchFailure is a task of a batch that failed, as it is answered.
type batchFailure struct {
	Task       string `json:"task"`
	Status     int    `json:"status"`
	Error      string `json:"error,omitempty"`
	RetryAfter string `json:"retry_after,omitempty"`
}

// serveBatch hands each task of a batch to the function, and answers with those that failed.
func (r *Receiver) serveBatch(w http.ResponseWriter, q *http.Request, body []byte) {
	calls, err := parseBatch(q.Header, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	failures, places := make([]*batchFailure, len(calls)), make(chan struct{}, r.atOnce)
	var all sync.WaitGroup
	for i, c := range calls {
		places <- struct{}{}
		all.Add(1)
		go func() {
			defer all.Done()
			failures[i] = r.handleMember(q.Context(), c)
			<-places
		}()
	}
	all.Wait()
	var answer struct {
		Failures []*batchFailure `json:"failures"`
	}
	for _, f := range failures {
		if f != nil {
			answer.Failures = append(answer.Failures, f)
		}
	}
	if answer.Failures == nil {
		w.WriteHeader(http.StatusOK)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		r.log.Error("cannot answer a batch", "err", err) // the server calls all of them again
	}
}

// handleMember handles one task; nil: it is handled.
func (r *Receiver) handleMember(ctx context.Context, c *Call) *batchFailure {
	switch standing, err := r.begin(ctx, c.Key); {
	case err != nil:
		r.log.Error("cannot ask the store of handled tasks", "task", c.Key, "err", err)
		return &batchFailure{c.Key, http.StatusServiceUnavailable, "the store of handled tasks is not there", "1s"}
	case standing == Busy:
		return &batchFailure{c.Key, http.StatusServiceUnavailable, "another call for this task is at work", "1s"}
	case standing == Handled:
		return nil
	}
	return failureOf(c.Key, r.runMember(ctx, c))
}

// runMember is run; a panic is an error of this task alone.
func (r *Receiver) runMember(ctx context.Context, c *Call) (err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("the handler of a task panicked", "task", c.Key, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("the handler panicked: %v", p)
		}
	}()
	return r.run(ctx, c)
}

// failureOf is what reply answers to a task alone.
func failureOf(key string, err error) *batchFailure {
	var later *retryError
	var final *permanentError
	if err == nil {
		return nil
	}
	text := err.Error()
	f := &batchFailure{Task: key, Status: http.StatusInternalServerError, Error: text[:min(len(text), 1<<10)]}
	switch {
	case errors.As(err, &final):
		f.Status = http.StatusUnprocessableEntity
	case errors.As(err, &later):
		f.Status, f.RetryAfter = http.StatusServiceUnavailable, max(later.after, time.Second).String()
	}
	return f
}

// parseBatch reads the tasks of a batch.
func parseBatch(h http.Header, body []byte) ([]*Call, error) {
	var b struct {
		Tasks []json.RawMessage `json:"tasks"`
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, fmt.Errorf("cannot read the batch: %w", err)
	}
	if len(b.Tasks) == 0 {
		return nil, errors.New("the batch has no tasks")
	}
	app, err := url.PathUnescape(h.Get("X-Xtimer-App"))
	if err != nil {
		return nil, fmt.Errorf("X-Xtimer-App: %w", err)
	}
	calls := make([]*Call, len(b.Tasks))
	for i, raw := range b.Tasks {
		var m member
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, fmt.Errorf("cannot read task %d of the batch: %w", i, err)
		}
		c := &Call{Key: m.Task, App: app, Name: m.Name, Attempt: m.Attempt, Redelivered: m.Redelivered, Batch: h.Get(batchHeader), Body: raw}
		switch {
		case m.Body != nil:
			c.Body = m.Body
		case m.BodyBase64 != nil:
			c.Body = m.BodyBase64
		}
		if c.TimerID, c.Due, err = parseKey(m.Task); err != nil {
			return nil, fmt.Errorf("task %d of the batch: %w", i, err)
		}
		calls[i] = c
	}
	return calls, nil
}

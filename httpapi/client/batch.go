package client

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
)

// BatchResult is the outcome for one timer of a batch: ID, or Error.
type BatchResult struct {
	Status int    `json:"status"` // 201; 200: there already with the same definition
	ID     string `json:"id,omitempty"`
	Error  *Error `json:"error,omitempty"`
}

// The limits of one batch.
const (
	maxBatch      = 1000
	maxBatchBytes = 8 << 20
)

// CreateBatch makes up to 1,000 timers, each by itself; outcomes are in order.
func (c *Client) CreateBatch(ctx context.Context, timers []Definition) ([]BatchResult, error) {
	body := struct {
		Timers []Definition `json:"timers"`
	}{timers}
	return c.batch(ctx, request{body: body})
}

func (c *Client) batch(ctx context.Context, q request) ([]BatchResult, error) {
	// A timer has a name, and creating what is there already changes nothing.
	q.method, q.path, q.twice = http.MethodPost, "/v1/timers/batch", true
	out, err := send[struct{ Results []BatchResult }](ctx, c, q)
	if err != nil {
		return nil, err
	}
	for i, r := range out.Results {
		if r.Error != nil {
			r.Error.unplace(fmt.Sprintf("timers[%d].", i))
		}
	}
	return out.Results, nil
}

// unplace takes a timer's place in its batch out of what is said of it.
func (e *Error) unplace(at string) {
	e.Detail = strings.TrimPrefix(e.Detail, at)
	for i, f := range e.Fields {
		e.Fields[i].Field = strings.TrimPrefix(f.Field, at)
	}
}

// CreateAll makes any number of timers, batch by batch as they come, and yields
// their outcomes in order. An error is the last thing it yields: what becomes of
// the batch then under way is not known, and what comes after it is not made.
func (c *Client) CreateAll(ctx context.Context, timers iter.Seq[Definition]) iter.Seq2[BatchResult, error] {
	return func(yield func(BatchResult, error) bool) {
		var lines bytes.Buffer
		n := 0
		flush := func() bool {
			if n == 0 {
				return true
			}
			results, err := c.batch(ctx, request{body: lines.Bytes(), kind: "application/x-ndjson"})
			if err == nil && len(results) != n {
				err = fmt.Errorf("the server returned %d results for %d timers", len(results), n)
			}
			if err != nil {
				yield(BatchResult{}, err)
				return false
			}
			for _, r := range results {
				if !yield(r, nil) {
					return false
				}
			}
			lines.Reset()
			n = 0
			return true
		}
		for d := range timers {
			line, err := marshal(d)
			if err != nil {
				yield(BatchResult{}, fmt.Errorf("cannot write the timer %s: %w", d.Name, err))
				return
			}
			if n == maxBatch || lines.Len()+len(line)+1 > maxBatchBytes {
				if !flush() {
					return
				}
			}
			lines.Write(line)
			lines.WriteByte('\n')
			n++
		}
		flush()
	}
}

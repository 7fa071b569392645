package client

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
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
	lines := make([][]byte, 0, len(timers))
	for i := range timers {
		line, err := timers[i].line()
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return c.batch(ctx, lines)
}

func (d *Definition) line() ([]byte, error) {
	line, err := marshal(d)
	if err != nil {
		return nil, fmt.Errorf("cannot write the timer %s: %w", d.Name, err)
	}
	return append(line, '\n'), nil
}

// batch makes a timer of each line. Timers that are refused because the quota of their app
// allows so many creates a second are made later: as long as some are made each time, all are.
func (c *Client) batch(ctx context.Context, lines [][]byte) ([]BatchResult, error) {
	results, left := make([]BatchResult, len(lines)), make([]int, len(lines))
	for i := range left {
		left[i] = i
	}
	for try := 1; ; try++ {
		some, err := c.batchOnce(ctx, lines, left)
		if err != nil {
			return nil, err
		}
		var late []int
		for j, i := range left {
			if results[i] = some[j]; results[i].isTooFast() {
				late = append(late, i)
			}
		}
		if len(late) < len(left) {
			try = 1
		}
		if len(late) == 0 || try == maxTries || sleep(ctx, rateWindow+rand.N(firstWait)) != nil {
			return results, nil
		}
		left = late
	}
}

// rateWindow is how long a create counts against the quota, at most: a second, and a 64th.
const rateWindow = time.Second + time.Second/50

// isTooFast reports whether the timer can be made a little later.
func (r *BatchResult) isTooFast() bool {
	return r.Error != nil && r.Error.Status == http.StatusTooManyRequests && r.Error.Code == "rate_limited"
}

// batchOnce makes one request of some of the lines.
func (c *Client) batchOnce(ctx context.Context, lines [][]byte, some []int) ([]BatchResult, error) {
	var body bytes.Buffer
	for _, i := range some {
		body.Write(lines[i])
	}
	// A timer has a name, and creating what is there already changes nothing.
	q := request{method: http.MethodPost, path: "/v1/timers/batch", body: body.Bytes(), kind: "application/x-ndjson", twice: true}
	out, err := send[struct{ Results []BatchResult }](ctx, c, q)
	if err == nil && len(out.Results) != len(some) {
		err = fmt.Errorf("the server returned %d results for %d timers", len(out.Results), len(some))
	}
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
		var lines [][]byte
		size := 0
		flush := func() bool {
			if len(lines) == 0 {
				return true
			}
			results, err := c.batch(ctx, lines)
			if err != nil {
				yield(BatchResult{}, err)
				return false
			}
			for _, r := range results {
				if !yield(r, nil) {
					return false
				}
			}
			lines, size = nil, 0
			return true
		}
		for d := range timers {
			line, err := d.line()
			if err != nil {
				yield(BatchResult{}, err)
				return
			}
			if len(lines) == maxBatch || size+len(line) > maxBatchBytes {
				if !flush() {
					return
				}
			}
			lines, size = append(lines, line), size+len(line)
		}
		flush()
	}
}

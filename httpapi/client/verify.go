package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Verification is what is to be verified: what was due from From, before To.
type Verification struct {
	App      string // "": all
	From, To time.Time
	Late     time.Duration // a first attempt later than this is a finding too; 0: none is
}

// Finding is something that a verification found.
type Finding struct {
	Kind    string    `json:"finding"` // gap, repeat, early, late, stray, miscount, unproven, damaged
	TimerID string    `json:"timer_id"`
	App     string    `json:"app"`
	Name    string    `json:"name"`
	Due     time.Time `json:"due"`
	DueLast time.Time `json:"due_last,omitzero"`
	Count   int64     `json:"count"` // of dues, from Due to DueLast
	Detail  string    `json:"detail"`
}

// Verdict is the outcome of a verification.
type Verdict struct {
	Verdict string           `json:"verdict"` // proven, failed
	From    time.Time        `json:"from"`
	To      time.Time        `json:"to"`
	Timers  int64            `json:"timers"`
	Dues    int64            `json:"dues"`
	Records int64            `json:"records"`
	Open    int64            `json:"open"`
	Unkept  int64            `json:"unkept"`
	Found   map[string]int64 `json:"found"` // dues by kind of finding
}

// Verify has the server recompute what should have fired, and hold it against
// what did; each sees the findings as they are made.
func (c *Client) Verify(ctx context.Context, v Verification, each func(*Finding)) (*Verdict, error) {
	q := make(url.Values)
	set(q, "app", v.App)
	setTime(q, "from", v.From)
	setTime(q, "to", v.To)
	if v.Late > 0 {
		q.Set("late", v.Late.String())
	}
	resp, err := c.open(ctx, &request{method: http.MethodGet, path: "/v1/admin/verify", query: q}, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, readError(resp)
	}
	for lines := bufio.NewScanner(resp.Body); ; {
		if !lines.Scan() {
			return nil, fmt.Errorf("the response ended before its verdict: %w", errors.Join(lines.Err(), io.ErrUnexpectedEOF))
		}
		if len(lines.Bytes()) == 0 {
			continue // it is still at work
		}
		var line struct{ Finding, Verdict, Error string }
		err := json.Unmarshal(lines.Bytes(), &line)
		switch {
		case err == nil && line.Error != "":
			return nil, fmt.Errorf("the server could not continue: %s", line.Error)
		case err == nil && line.Verdict != "":
			out := new(Verdict)
			return out, json.Unmarshal(lines.Bytes(), out)
		case err == nil:
			f := new(Finding)
			if err = json.Unmarshal(lines.Bytes(), f); err == nil {
				each(f)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read a finding: %w", err)
		}
	}
}

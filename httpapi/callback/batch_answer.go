package callback

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
)

// maxBatchBody is how much of the body of the answer to a batch is read: 1,000 failures with
// an error of 1 KiB each.
const maxBatchBody = 1200 << 10

// readBatchBody reads the whole body of the answer to a batch, which names the members that
// failed. One that is too large is not whole.
func readBatchBody(s *scratch, o *engine.Outcome) (whole bool, err error) {
	if o.Code == fasthttp.StatusNoContent || o.Code == fasthttp.StatusNotModified {
		return true, nil
	}
	resp := &s.resp
	err = resp.ReadBody(s.answer, maxBatchBody)
	whole = !errors.Is(err, fasthttp.ErrBodyTooLarge)
	if !whole {
		return false, nil
	}
	if err == nil && resp.Header.ContentLength() == -1 {
		if err = resp.Header.ReadTrailer(s.answer); err != nil && !brokeOff(err) {
			err = nil // as for one task
		}
	}
	if body := resp.Body(); len(body) > 0 {
		o.Response = bytes.Clone(body[:min(len(body), maxResponse)])
	}
	return true, err
}

// failure is a member that an answer names.
type failure struct {
	Task       string          `json:"task"`
	Status     *int            `json:"status"`
	Error      string          `json:"error"`
	RetryAfter json.RawMessage `json:"retry_after"`
}

// spread reads from a good answer which members failed. An answer that is no JSON object has
// no failures; one that names a task that is no member, or that cannot be read, says nothing
// that can be relied on: then the outcome is of all members.
func spread(o *engine.Outcome, b *engine.BatchCall, h *fasthttp.ResponseHeader, body []byte, whole bool, success string) {
	b.Failures = nil
	if o.Class != engine.ClassOK {
		return
	}
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff"))) // which .NET writes
	if coding := h.ContentEncoding(); len(body) > 0 && len(coding) > 0 && !bytes.EqualFold(coding, []byte("identity")) {
		whole = false // nobody has asked for it to be compressed
	}
	if whole && (len(body) == 0 || body[0] != '{') {
		o.Response = nil // the same for each of them
		return
	}
	failures, err := parseFailures(body, whole, b, success)
	if err != nil {
		o.Class, o.ErrorClass = engine.ClassUnknown, wordBadAnswer
		return
	}
	o.Response, b.Failures = nil, failures
}

func parseFailures(body []byte, whole bool, b *engine.BatchCall, success string) (map[engine.Key]engine.Outcome, error) {
	if !whole {
		return nil, fmt.Errorf("the body has more than %d bytes, or is compressed", maxBatchBody)
	}
	var a struct {
		Failures []failure `json:"failures"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, err
	}
	if len(a.Failures) == 0 {
		return nil, nil
	}
	members := make(map[engine.Key]bool, len(b.Calls))
	for _, m := range b.Calls {
		members[m.Key] = true
	}
	failures := make(map[engine.Key]engine.Outcome, len(a.Failures))
	for i := range a.Failures {
		f := &a.Failures[i]
		key, err := engine.ParseKey(f.Task)
		if err != nil {
			return nil, err
		}
		if !members[key] {
			return nil, fmt.Errorf("%s is no task of the batch", f.Task)
		}
		o, err := f.outcome(success)
		if err != nil {
			return nil, err
		}
		failures[key] = o
	}
	return failures, nil
}

// outcome is that of a task that had been answered so.
func (f *failure) outcome(success string) (o engine.Outcome, err error) {
	o.Code = fasthttp.StatusInternalServerError
	if f.Status != nil {
		o.Code = *f.Status
	}
	if o.Code < 200 || o.Code > 999 {
		return o, fmt.Errorf("status %d is not valid", o.Code)
	}
	after, err := f.after()
	if err != nil {
		return o, err
	}
	o.Class = classOf(o.Code, success)
	if o.Class != engine.ClassOK {
		o.ErrorClass = wordStatus
	}
	if o.Class == engine.ClassRetry {
		o.RetryAfter = after
	}
	if f.Error != "" {
		o.Response = []byte(strings.ToValidUTF8(f.Error[:min(len(f.Error), maxResponse)], ""))
	}
	return o, nil
}

// after reads a duration: a string such as 5s, or a number of ms.
func (f *failure) after() (time.Duration, error) {
	const most = 365 * 24 * time.Hour
	var ms float64
	var text string
	switch {
	case len(f.RetryAfter) == 0:
		return 0, nil
	case json.Unmarshal(f.RetryAfter, &ms) == nil:
		return time.Duration(min(max(ms, 0), float64(most/time.Millisecond))) * time.Millisecond, nil
	}
	if err := json.Unmarshal(f.RetryAfter, &text); err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(text)
	return min(max(d, 0), most), err
}

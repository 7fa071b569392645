package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"xtimer/cmd/xtimer/remote"
)

const (
	// maxBatchBytes keeps a request below the 8 MiB that the API takes.
	maxBatchBytes = 6 << 20
	maxPayload    = 512 << 10
	// loaders is how many requests are under way at a time.
	loaders = 4
	// Label marks all timers of a run, for their deletion.
	Label = "xtimer-bench"
)

// benchLoad makes the timers of a run, and deletes them.
type benchLoad struct {
	b     *bench
	http  *http.Client
	id    string // of the run: the value of its label
	n     int
	start time.Time // of the first due
	urls  []string

	asked atomic.Bool  // a request was sent: its timers may be made, whatever its answer
	made  atomic.Int64 // acknowledged
	// state of each timer, written by the loader that makes it.
	state []madeState

	mu    sync.Mutex
	took  []time.Duration // of each request
	first time.Time       // request sent
	last  time.Time       // answer read
}

type madeState uint8

const (
	notMade  madeState = iota
	madeLate           // acknowledged, but only after its due
	madeTimely
)

func newBenchLoad(b *bench, n int, start time.Time, urls []string) *benchLoad {
	return &benchLoad{
		b: b, n: n, start: start, urls: urls, state: make([]madeState, n),
		id:   strconv.FormatInt(time.Now().UnixNano(), 36),
		http: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: loaders}},
	}
}

type benchBatch struct{ from, to int }

// run makes the timers, each batch its lead before its first due, and returns
// when all are acknowledged, or with the first refusal.
func (l *benchLoad) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	batches := make(chan benchBatch)
	var wg sync.WaitGroup
	for range loaders {
		wg.Go(func() {
			for x := range batches {
				if err := l.send(ctx, x); err != nil {
					cancel(err)
				}
			}
		})
	}
	size, lead := l.b.shape.batch(l.b.payload), l.b.shape.leadTime()
	for i := 0; i < l.n && ctx.Err() == nil; i += size {
		x := benchBatch{i, min(i+size, l.n)}
		wait := time.NewTimer(time.Until(l.b.shape.due(l.start, i).Add(-lead)))
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
		wait.Stop()
		select {
		case batches <- x:
		case <-ctx.Done():
		}
	}
	close(batches)
	wg.Wait()
	return context.Cause(ctx)
}

// send makes the timers of one batch. It is not cut short: what the server makes of
// it counts, and is deleted at the end.
func (l *benchLoad) send(ctx context.Context, x benchBatch) error {
	var lines bytes.Buffer
	for i := x.from; i < x.to; i++ {
		l.line(&lines, i)
	}
	req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPost, l.b.client.Base+"/v1/timers/batch", &lines)
	if err != nil {
		return fmt.Errorf("cannot ask the server: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	if l.b.client.Token != "" {
		req.Header.Set("Authorization", "Bearer "+l.b.client.Token)
	}
	l.asked.Store(true)
	sent := time.Now()
	resp, err := l.http.Do(req)
	if err != nil {
		return fmt.Errorf("cannot make timers: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("cannot make timers: %w", remote.Problem(resp))
	}
	var out struct {
		Results []struct {
			Status int
			Error  struct{ Title, Detail string }
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return fmt.Errorf("cannot read the server's response: %w", err)
	}
	if len(out.Results) != x.to-x.from {
		return fmt.Errorf("the server returned %d results for %d timers", len(out.Results), x.to-x.from)
	}
	answered := time.Now()

	// What is acknowledged counts, also beside one that was refused.
	var refused error
	for i, made := range out.Results {
		if made.Status != http.StatusCreated {
			refused = fmt.Errorf("the server refused a timer: %d %s %s", made.Status, made.Error.Title, made.Error.Detail)
			continue
		}
		l.state[x.from+i] = madeTimely
		if answered.After(l.b.shape.due(l.start, x.from+i)) {
			l.state[x.from+i] = madeLate
		}
		l.made.Add(1)
	}
	l.note(sent, answered)
	return refused
}

func (l *benchLoad) note(sent, answered time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took = append(l.took, answered.Sub(sent))
	if l.first.IsZero() || sent.Before(l.first) {
		l.first = sent
	}
	if answered.After(l.last) {
		l.last = answered
	}
}

// line is the definition of timer i.
func (l *benchLoad) line(w *bytes.Buffer, i int) {
	fmt.Fprintf(w, `{"app":%q,"name":"%s-%d","schedule":{"at":%d},"labels":{"%s":"%s"},"callback":{"url":%q,"headers":{"%s":"%d"}`,
		l.app(i), l.id, i, l.b.shape.due(l.start, i).UnixMilli(), Label, l.id, l.urls[i%len(l.urls)], numberHeader, i)
	if l.b.payload > 0 {
		fmt.Fprintf(w, `,"body_text":"%s"`, strings.Repeat("x", l.b.payload))
	}
	w.WriteString("}}\n")
}

func (l *benchLoad) app(i int) string {
	if l.b.apps == 1 {
		return "bench"
	}
	return "bench-" + strconv.Itoa(i%l.b.apps+1)
}

// clean deletes the timers of the run, app by app, and waits until they are gone.
func (l *benchLoad) clean(ctx context.Context, out io.Writer) error {
	if !l.asked.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	var deleted int64
	for i := range min(l.b.apps, l.n) {
		n, err := l.deleteOf(ctx, l.app(i))
		if err != nil {
			return fmt.Errorf("cannot delete the timers of the run (label %s=%s): %w", Label, l.id, err)
		}
		deleted += n
	}
	fmt.Fprintf(out, "  deleted   %d timers\n", deleted)
	return nil
}

func (l *benchLoad) deleteOf(ctx context.Context, app string) (int64, error) {
	var op struct {
		ID                  string
		Count, Done, Failed int64
		Ended               bool
		Error               string
	}
	in := map[string]any{"app": app, "label": Label + "=" + l.id}
	if err := l.b.client.Do(ctx, http.MethodPost, "/v1/timers/delete", in, &op); err != nil {
		return 0, err
	}
	for !op.Ended {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return op.Done, ctx.Err()
		}
		if err := l.b.client.Do(ctx, http.MethodGet, "/v1/operations/"+op.ID, nil, &op); err != nil {
			return op.Done, err
		}
	}
	if op.Failed > 0 || op.Error != "" {
		return op.Done, fmt.Errorf("%d of %d timers are left: %s", op.Failed, op.Count, cmp.Or(op.Error, "the server gave no reason"))
	}
	return op.Done, nil
}

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Call is one call of the server: an attempt at a task.
type Call struct {
	Key         string // of the task: the same over retries, crashes and replays
	TimerID     string
	App, Name   string // of the timer
	Due         time.Time
	Attempt     int  // 1, 2, …
	Redelivered bool // it may have been sent before
	// Body is that of the timer. In a batch, of a timer without a body, it is the task as the batch has it.
	Body  []byte
	Batch string // the id of the batch that the task came in; "": it came alone
}

// Receiver is the http.Handler of a callback's URL. It verifies the signature,
// hands each task to a function until that has handled it, and once it has,
// never again:
//
//	what the function returns    the answer   what the server does
//	nil                          200          the task has succeeded
//	an error                     500          tries again, as the timer's retry says
//	RetryAfter(err, d)           503          tries again, not before d
//	Permanent(err)               422          the task has failed
//
// The text of an error goes into the answer, of which the server keeps the first
// KiB with the attempt. A panic breaks the connection, which is an error.
//
// A repeat that comes while the first call is still at work waits for it, and
// runs only if that one fails. The function's context ends when the server gives
// up on the call; a function that goes on all the same is not run a second time
// meanwhile.
//
// The signature covers the key and the body, so that Key, TimerID, Due and Body
// are beyond doubt. App, Name, Attempt and Redelivered are as the headers say.
//
// A call may be a batch of tasks. The function is run for each of them, for some at once, and
// the answer names those for which it returns an error, or panics.
type Receiver struct {
	handle func(context.Context, *Call) error
	keys   [][]byte // nil: unsigned
	store  Store
	log    *slog.Logger
	atOnce int // tasks of a batch

	mu      sync.Mutex
	running map[string]chan struct{} // guarded by mu: closed when the call has ended
}

// ReceiverConfig of a Receiver.
type ReceiverConfig struct {
	// Secrets that the app signs with, "whsec_…"; several while one is being
	// rotated: any of them will do.
	Secrets []string
	// Unsigned takes calls of an app that has no secret: everybody's.
	Unsigned bool
	// Store remembers what was handled; default NewMemoryStore(time.Hour).
	Store Store
	// BatchAtOnce is how many tasks of a batch are handled at once; default 16.
	BatchAtOnce int
	// Log says what went wrong with the store; default slog.Default().
	Log *slog.Logger
}

// Store remembers which tasks were handled. It is used by many at once.
type Store interface {
	// Begin claims a task that nobody has (Fresh), or says why not. A store that
	// several processes share has to let a claim lapse: a process may die with it.
	Begin(ctx context.Context, key string) (Standing, error)
	// End gives a claim back: the task is handled for good, or Fresh again.
	End(ctx context.Context, key string, handled bool) error
}

// Standing of a task in a Store.
type Standing int

// The standings.
const (
	Fresh   Standing = iota // it is yours now
	Busy                    // another has it
	Handled                 // it is done
)

// NewReceiver is a handler that hands each task to handle.
func NewReceiver(handle func(context.Context, *Call) error, cfg ReceiverConfig) (*Receiver, error) {
	r := &Receiver{handle: handle, store: cfg.Store, log: cfg.Log, atOnce: cfg.BatchAtOnce, running: make(map[string]chan struct{})}
	if r.store == nil {
		r.store = NewMemoryStore(time.Hour)
	}
	if r.atOnce <= 0 {
		r.atOnce = batchAtOnce
	}
	if r.log == nil {
		r.log = slog.Default()
	}
	if len(cfg.Secrets) == 0 != cfg.Unsigned {
		return nil, errors.New("set either Secrets or Unsigned of the ReceiverConfig")
	}
	var err error
	r.keys, err = parseSecrets(cfg.Secrets)
	return r, err
}

// maxCall bounds the body of a call; the server's are at most 512 KiB, and 1 MiB of a batch.
const maxCall = 1 << 20

const batchHeader = "X-Xtimer-Batch"

func (r *Receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxCall))
	if err != nil {
		http.Error(w, "cannot read the body: "+err.Error(), http.StatusBadRequest)
		return
	}
	if !r.verified(w, q, body) {
		return
	}
	if q.Header.Get(batchHeader) != "" {
		r.serveBatch(w, q, body)
		return
	}
	c, err := parseCall(q.Header, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch standing, err := r.begin(q.Context(), c.Key); {
	case err != nil:
		r.log.Error("cannot ask the store of handled tasks", "task", c.Key, "err", err)
		answer503(w, time.Second, "the store of handled tasks is not there")
	case standing == Busy:
		answer503(w, time.Second, "another call for this task is at work")
	case standing == Handled:
		w.WriteHeader(http.StatusOK)
	default:
		reply(w, r.run(q.Context(), c))
	}
}

func (r *Receiver) verified(w http.ResponseWriter, q *http.Request, body []byte) bool {
	if r.keys == nil {
		return true
	}
	id, err := verify(r.keys, q.Header, body, time.Now())
	batch := q.Header.Get(batchHeader)
	switch {
	case err != nil:
	case batch == "" && id != q.Header.Get("X-Xtimer-Task"):
		err = errors.New("the task is not the one that was signed")
	case batch != "" && (id != batch || strings.Contains(id, "_")): // no call of a task passes for a batch
		err = errors.New("the batch is not the one that was signed")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return false
	}
	return true
}

// parseCall reads the headers of a call.
func parseCall(h http.Header, body []byte) (*Call, error) {
	c := &Call{Key: h.Get("X-Xtimer-Task"), Redelivered: h.Get("X-Xtimer-Redelivered") == "1", Body: body}
	var err error
	if c.TimerID, c.Due, err = parseKey(c.Key); err != nil {
		return nil, fmt.Errorf("X-Xtimer-Task: %w", err)
	}
	attempt := h.Get("X-Xtimer-Attempt")
	if c.Attempt, err = strconv.Atoi(attempt); err != nil || c.Attempt < 1 {
		return nil, fmt.Errorf("X-Xtimer-Attempt: %q is not the number of an attempt", attempt)
	}
	if c.App, err = url.PathUnescape(h.Get("X-Xtimer-App")); err != nil {
		return nil, fmt.Errorf("X-Xtimer-App: %w", err)
	}
	if c.Name, err = url.PathUnescape(h.Get("X-Xtimer-Name")); err != nil {
		return nil, fmt.Errorf("X-Xtimer-Name: %w", err)
	}
	return c, nil
}

// parseKey takes the key of a task apart.
func parseKey(key string) (timer string, due time.Time, err error) {
	timer, ms, _ := strings.Cut(key, "_")
	n, _ := strconv.ParseInt(timer, 10, 64)
	at, _ := strconv.ParseInt(ms, 10, 64)
	// A key is written in one way: in another it would pass for another task.
	if n <= 0 || at <= 0 || key != fmt.Sprintf("%d_%d", n, at) {
		return "", time.Time{}, fmt.Errorf("%q is not the key of a task", key)
	}
	return timer, time.UnixMilli(at).UTC(), nil
}

// begin claims a task; it waits for another call that has it in this process.
func (r *Receiver) begin(ctx context.Context, key string) (Standing, error) {
	for {
		r.mu.Lock()
		other := r.running[key]
		if other == nil {
			r.running[key] = make(chan struct{})
		}
		r.mu.Unlock()
		if other == nil {
			standing, err := r.store.Begin(ctx, key)
			if err != nil || standing != Fresh {
				r.end(key)
			}
			return standing, err
		}
		select {
		case <-other:
		case <-ctx.Done():
			return Busy, nil
		}
	}
}

func (r *Receiver) end(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.running[key])
	delete(r.running, key)
}

// run hands a claimed task over, and gives the claim back, whatever happens.
func (r *Receiver) run(ctx context.Context, c *Call) (err error) {
	handled := false
	defer func() {
		// It is done, or not: that the server has gone away changes nothing.
		if err := r.store.End(context.WithoutCancel(ctx), c.Key, handled); err != nil {
			r.log.Error("cannot tell the store of handled tasks", "task", c.Key, "handled", handled, "err", err)
		}
		r.end(c.Key)
	}()
	err = r.handle(ctx, c)
	handled = err == nil
	return err
}

// reply answers what a function returned.
func reply(w http.ResponseWriter, err error) {
	var later *retryError
	var final *permanentError
	switch {
	case err == nil:
		w.WriteHeader(http.StatusOK)
	case errors.As(err, &final):
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
	case errors.As(err, &later):
		answer503(w, later.after, err.Error())
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func answer503(w http.ResponseWriter, after time.Duration, text string) {
	seconds := max(1, (after+time.Second-1)/time.Second)
	w.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	http.Error(w, text, http.StatusServiceUnavailable)
}

type permanentError struct{ error }

func (e *permanentError) Unwrap() error { return e.error }

type retryError struct {
	error
	after time.Duration
}

func (e *retryError) Unwrap() error { return e.error }

// Permanent is err, and no attempt after this one can do better. The task can
// still be made again by hand.
func Permanent(err error) error { return &permanentError{err} }

// RetryAfter is err, and the next attempt should not come before d has passed,
// in whole seconds. The server waits no longer than the timer's max_backoff.
func RetryAfter(err error, d time.Duration) error { return &retryError{err, d} }

package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"xtimer/httpapi"
	"xtimer/httpapi/client"
)

const (
	oldSecret   = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newSecret   = "whsec_QfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	otherSecret = "whsec_AfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

	taskKey = "7354_1763658000250"
)

// incoming is a call as the server makes it.
func incoming(body string) *http.Request {
	q := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	for k, v := range map[string]string{
		"X-Xtimer-Task": taskKey, "X-Xtimer-Timer": "7354", "X-Xtimer-App": "a", "X-Xtimer-Name": "n%20%C3%A9",
		"X-Xtimer-Attempt": "2", "X-Xtimer-Redelivered": "1",
	} {
		q.Header.Set(k, v)
	}
	return q
}

// signed signs a call with each of the secrets, at that time.
func signed(t *testing.T, q *http.Request, body string, at time.Time, secrets ...string) *http.Request {
	t.Helper()
	q.Header.Set("webhook-id", q.Header.Get("X-Xtimer-Task"))
	q.Header.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	var all []string
	for _, s := range secrets {
		w, err := standardwebhooks.NewWebhook(s)
		if err != nil {
			t.Fatal(err)
		}
		one, err := w.Sign(taskKey, at, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	q.Header.Set("webhook-signature", strings.Join(all, " "))
	return q
}

func receiver(t *testing.T, cfg client.ReceiverConfig, handle func(context.Context, *client.Call) error) *client.Receiver {
	t.Helper()
	cfg.Unsigned = len(cfg.Secrets) == 0
	cfg.Log = slog.New(slog.DiscardHandler)
	r, err := client.NewReceiver(handle, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func answer(r http.Handler, q *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r.ServeHTTP(w, q)
	return w
}

func TestReceiverReadsTheCall(t *testing.T) {
	var got client.Call
	r := receiver(t, client.ReceiverConfig{}, func(_ context.Context, c *client.Call) error { got = *c; return nil })
	if w := answer(r, incoming("body")); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if got.Key != taskKey || got.TimerID != "7354" || got.App != "a" || got.Name != "n é" || got.Attempt != 2 || !got.Redelivered ||
		!got.Due.Equal(time.UnixMilli(1763658000250)) || string(got.Body) != "body" {
		t.Errorf("%+v", got)
	}
	for header, bad := range map[string][]string{
		"X-Xtimer-Task":    {"7354", "7354_-1", "07354_1763658000250", "+7354_1763658000250", "0_1"},
		"X-Xtimer-Attempt": {"", "-1", "0"}, "X-Xtimer-Name": {"%zz"}, "X-Xtimer-App": {"%"},
	} {
		for _, bad := range bad {
			q := incoming("")
			q.Header.Set(header, bad)
			if w := answer(r, q); w.Code != 400 {
				t.Errorf("%s %q: %d", header, bad, w.Code)
			}
		}
	}
	if w := answer(r, incoming(strings.Repeat("x", 1<<20+1))); w.Code != 400 {
		t.Errorf("an endless body: %d", w.Code)
	}
}

func TestReceiverAnswers(t *testing.T) {
	f := func(err error, status int, retryAfter string) {
		t.Helper()
		r := receiver(t, client.ReceiverConfig{}, func(context.Context, *client.Call) error { return err })
		w := answer(r, incoming(""))
		if w.Code != status || w.Header().Get("Retry-After") != retryAfter || err != nil && !strings.Contains(w.Body.String(), err.Error()) {
			t.Errorf("%v: %d %q %s", err, w.Code, w.Header().Get("Retry-After"), w.Body)
		}
	}
	why := errors.New("why")
	f(nil, 200, "")
	f(why, 500, "")
	f(client.Permanent(why), 422, "")
	f(errors.Join(client.Permanent(why), why), 422, "")
	f(client.RetryAfter(why, 90*time.Second), 503, "90")
	f(client.RetryAfter(why, 1500*time.Millisecond), 503, "2") // not before: rounded up
	f(client.RetryAfter(why, 0), 503, "1")
	if !errors.Is(client.Permanent(why), why) || !errors.Is(client.RetryAfter(why, 0), why) {
		t.Error("the cause is lost")
	}
}

func TestReceiverVerifies(t *testing.T) {
	r := receiver(t, client.ReceiverConfig{Secrets: []string{newSecret, oldSecret}}, func(context.Context, *client.Call) error { return client.Permanent(errors.New("in")) })
	now := time.Now()
	f := func(what string, in bool, q *http.Request) {
		t.Helper()
		want := 401
		if in {
			want = 422
		}
		if w := answer(r, q); w.Code != want || strings.Contains(w.Body.String(), "whsec") {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
	}
	with := func(q *http.Request, name, value string) *http.Request { q.Header.Set(name, value); return q }
	good := func() *http.Request { return signed(t, incoming("b"), "b", now, newSecret) }
	f("the new secret", true, good())
	f("the old secret", true, signed(t, incoming("b"), "b", now, oldSecret))
	f("both", true, signed(t, incoming("b"), "b", now, oldSecret, newSecret))
	f("one that is ours", true, signed(t, incoming("b"), "b", now, otherSecret, newSecret))
	f("a little late", true, signed(t, incoming("b"), "b", now.Add(-4*time.Minute), newSecret))

	f("unsigned", false, incoming("b"))
	f("another's secret", false, signed(t, incoming("b"), "b", now, otherSecret))
	f("another body", false, signed(t, incoming("c"), "b", now, newSecret))
	f("another time", false, with(good(), "webhook-timestamp", strconv.FormatInt(now.Unix()+1, 10)))
	f("another id", false, with(good(), "webhook-id", "7354_1763658000251"))
	f("another task", false, with(good(), "X-Xtimer-Task", "7354_1763658000251"))
	f("another version", false, with(good(), "webhook-signature", strings.Replace(good().Header.Get("webhook-signature"), "v1,", "v2,", 1)))
	f("no base64", false, with(good(), "webhook-signature", "v1,!"))
	f("no time", false, with(good(), "webhook-timestamp", "soon"))
	f("played back", false, signed(t, incoming("b"), "b", now.Add(-6*time.Minute), newSecret))
	f("from the future", false, signed(t, incoming("b"), "b", now.Add(6*time.Minute), newSecret))
}

func TestReceiverIsNotOpenByAccident(t *testing.T) {
	none := func(context.Context, *client.Call) error { return nil }
	for _, cfg := range []client.ReceiverConfig{{}, {Secrets: []string{oldSecret}, Unsigned: true}, {Secrets: []string{""}}, {Secrets: []string{oldSecret, "whsec_short"}}} {
		if _, err := client.NewReceiver(none, cfg); err == nil || strings.Contains(err.Error(), "short") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// TestReceiverDropsRepeats: once handled, never again; until then, always.
func TestReceiverDropsRepeats(t *testing.T) {
	runs, result := 0, errors.New("not yet")
	r := receiver(t, client.ReceiverConfig{}, func(context.Context, *client.Call) error { runs++; return result })
	f := func(status, want int) {
		t.Helper()
		if w := answer(r, incoming("")); w.Code != status || runs != want {
			t.Errorf("%d after %d runs, want %d after %d", w.Code, runs, status, want)
		}
	}
	f(500, 1)
	result = client.Permanent(errors.New("no"))
	f(422, 2) // made again by hand it runs again
	result = nil
	f(200, 3)
	f(200, 3)
	other := incoming("")
	other.Header.Set("X-Xtimer-Task", "7354_1763658000251")
	if answer(r, other); runs != 4 {
		t.Error("another task was taken for a repeat")
	}
}

// TestReceiverRunsOneAtATime: a repeat that comes while the first is at work
// waits; it runs only if the first failed.
func TestReceiverRunsOneAtATime(t *testing.T) {
	for _, first := range []error{nil, errors.New("failed")} {
		synctest.Test(t, func(t *testing.T) {
			var at, runs, most atomic.Int32
			r := receiver(t, client.ReceiverConfig{}, func(context.Context, *client.Call) error {
				most.Store(max(most.Load(), at.Add(1)))
				defer at.Add(-1)
				time.Sleep(time.Minute)
				if runs.Add(1) == 1 {
					return first
				}
				return nil
			})
			var codes sync.Map
			for i := range 5 {
				go func() { codes.Store(i, answer(r, incoming("")).Code) }()
				synctest.Wait()
			}
			gone, leave := context.WithCancel(t.Context())
			go func() { codes.Store("gone", answer(r, incoming("").WithContext(gone)).Code) }()
			synctest.Wait()
			leave() // it was the sixth, and does not wait any longer
			synctest.Wait()
			if code, _ := codes.Load("gone"); code != 503 {
				t.Errorf("who does not wait gets %v", code)
			}
			time.Sleep(time.Hour)
			wantRuns, bad := int32(1), 0
			if first != nil {
				wantRuns, bad = 2, 1
			}
			for i := range 5 {
				if code, _ := codes.Load(i); code != 200 {
					bad--
				}
			}
			if most.Load() != 1 || runs.Load() != wantRuns || bad != 0 {
				t.Errorf("%d at once, %d runs, want 1 and %d", most.Load(), runs.Load(), wantRuns)
			}
		})
	}
}

func TestReceiverOutlivesAPanic(t *testing.T) {
	panics := true
	r := receiver(t, client.ReceiverConfig{}, func(context.Context, *client.Call) error {
		if panics {
			panic("oh")
		}
		return nil
	})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed: it would pass for a success")
			}
		}()
		answer(r, incoming(""))
	}()
	panics = false
	if w := answer(r, incoming("")); w.Code != 200 {
		t.Errorf("after a panic: %d", w.Code)
	}
}

// sharedStore is a store of a user, with what other processes did.
type sharedStore struct {
	standing client.Standing
	err      error
	ended    []bool
}

func (s *sharedStore) Begin(context.Context, string) (client.Standing, error) {
	return s.standing, s.err
}

func (s *sharedStore) End(ctx context.Context, _ string, handled bool) error {
	s.ended = append(s.ended, handled && ctx.Err() == nil)
	return s.err
}

func TestReceiverAsksItsStore(t *testing.T) {
	runs := 0
	s := &sharedStore{}
	r := receiver(t, client.ReceiverConfig{Store: s}, func(context.Context, *client.Call) error { runs++; return nil })
	f := func(standing client.Standing, err error, status, wantRuns int) {
		t.Helper()
		s.standing, s.err = standing, err
		w := answer(r, incoming(""))
		if w.Code != status || runs != wantRuns || status == 503 && w.Header().Get("Retry-After") == "" {
			t.Errorf("%v, %v: %d after %d runs", standing, err, w.Code, runs)
		}
	}
	f(client.Busy, nil, 503, 0)
	f(client.Handled, nil, 200, 0)
	f(client.Fresh, errors.New("down"), 503, 0)
	f(client.Fresh, nil, 200, 1)
	// The server gave up on the call, but the work is done.
	gone, leave := context.WithCancel(t.Context())
	leave()
	answer(r, incoming("").WithContext(gone))
	if !slices.Equal(s.ended, []bool{true, true}) {
		t.Errorf("it was told %v", s.ended)
	}
}

func TestMemoryStoreForgetsByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := client.NewMemoryStore(time.Hour)
		begin := func(key string, want client.Standing) {
			t.Helper()
			if got, _ := m.Begin(t.Context(), key); got != want {
				t.Errorf("%s is %v after %v, want %v", key, got, time.Now(), want)
			}
		}
		begin("a", client.Fresh)
		begin("a", client.Busy)
		_ = m.End(t.Context(), "a", false)
		time.Sleep(59 * time.Minute)
		begin("a", client.Fresh)
		_ = m.End(t.Context(), "a", true)
		begin("long", client.Fresh)
		for range 6 {
			begin("a", client.Handled)
			time.Sleep(10*time.Minute - time.Millisecond)
		}
		time.Sleep(2 * time.Hour)
		begin("a", client.Fresh)
		begin("long", client.Busy) // who is at work is at work
	})
}

// TestReceiverAndServer: the real server's calls, signed, from a failure to the
// success.
func TestReceiverAndServer(t *testing.T) {
	calls := make(chan client.Call, 16)
	r := receiver(t, client.ReceiverConfig{Secrets: []string{oldSecret}}, func(_ context.Context, c *client.Call) error {
		calls <- *c
		if c.Attempt == 1 {
			return errors.New("not at first")
		}
		return nil
	})
	target := httptest.NewServer(r)
	defer target.Close()
	url, _ := serve(t, newEngine(t, newSecret, oldSecret), "127.0.0.1:0", httpapi.ServerConfig{})
	c := dial(t, url)
	made, err := c.Create(t.Context(), client.Definition{
		App: "a", Name: "é/1", Schedule: client.Schedule{Delay: new(time.Duration(0))},
		Callback: client.Callback{URL: target.URL, Body: map[string]int{"order": 1842}},
		Retry:    client.Retry{Backoff: time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	first, second := <-calls, <-calls
	if first.Key != second.Key || second.Attempt != 2 || second.Name != "é/1" || second.TimerID != made.Timer.ID {
		t.Errorf("%+v, %+v", first, second)
	}
	var body struct{ Order int }
	if err := json.Unmarshal(second.Body, &body); err != nil || body.Order != 1842 {
		t.Errorf("%v: %s", err, second.Body)
	}
	until(t, func() bool {
		task, err := c.Task(t.Context(), first.Key)
		return err == nil && task.Status == client.Succeeded && len(task.Attempts) == 2 && strings.Contains(task.Attempts[0].Response, "not at first")
	})
}

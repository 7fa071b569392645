package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"xtimer/httpapi"
	"xtimer/httpapi/client"
)

const batchID = "00000000000000ab"

// incomingBatch is a batch of so many tasks as the server makes it, signed under an id.
func incomingBatch(t *testing.T, n int, id string) *http.Request {
	t.Helper()
	var tasks []string
	for i := range n {
		tasks = append(tasks, fmt.Sprintf(`{"task":"%d_1763658000250","timer":"%d","name":"n%d","due":"2025-11-20T17:00:00.250Z","attempt":1,"redelivered":false,"body":{"order":%d}}`, 100+i, 100+i, i, i))
	}
	body, at := `{"tasks":[`+strings.Join(tasks, ",")+`]}`, time.Now()
	q := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	q.Header.Set("X-Xtimer-Batch", batchID)
	q.Header.Set("X-Xtimer-App", "a")
	w, err := standardwebhooks.NewWebhook(oldSecret)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := w.Sign(id, at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("webhook-id", id)
	q.Header.Set("webhook-timestamp", fmt.Sprint(at.Unix()))
	q.Header.Set("webhook-signature", signature)
	return q
}

// Each task of a batch has the function to itself; the answer names those that failed, and a
// repeat runs those alone.
func TestReceiverTakesBatches(t *testing.T) {
	var running, most atomic.Int64
	var mu sync.Mutex
	runs := map[string]int{}
	r := receiver(t, client.ReceiverConfig{Secrets: []string{oldSecret}, BatchAtOnce: 3}, func(_ context.Context, c *client.Call) error {
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer running.Add(-1)
		mu.Lock()
		runs[c.Key]++
		again := runs[c.Key] > 1
		mu.Unlock()
		time.Sleep(time.Millisecond)
		if c.Batch != batchID || c.App != "a" || c.Attempt != 1 || string(c.Body) != `{"order":`+c.Name[1:]+`}` {
			t.Errorf("%+v", c)
		}
		if again {
			return nil
		}
		switch c.Name {
		case "n1":
			return errors.New("not now")
		case "n2":
			return client.Permanent(errors.New("never"))
		case "n3":
			return client.RetryAfter(errors.New("later"), 5*time.Second)
		case "n4":
			panic("oops")
		}
		return nil
	})
	w := answer(r, incomingBatch(t, 10, batchID))
	var got struct{ Failures []map[string]any }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	want := []map[string]any{
		{"task": "101_1763658000250", "status": 500.0, "error": "not now"},
		{"task": "102_1763658000250", "status": 422.0, "error": "never"},
		{"task": "103_1763658000250", "status": 503.0, "error": "later", "retry_after": "5s"},
		{"task": "104_1763658000250", "status": 500.0, "error": "the handler panicked: oops"},
	}
	if !reflect.DeepEqual(got.Failures, want) {
		t.Errorf("%s", w.Body)
	}
	if w := answer(r, incomingBatch(t, 10, batchID)); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("the repeat: %d %s", w.Code, w.Body)
	}
	mu.Lock()
	defer mu.Unlock()
	if most.Load() > 3 || len(runs) != 10 || runs["100_1763658000250"] != 1 || runs["101_1763658000250"] != 2 {
		t.Errorf("%d at once, %v", most.Load(), runs)
	}
}

func TestReceiverRefusesBatches(t *testing.T) {
	r := receiver(t, client.ReceiverConfig{Secrets: []string{oldSecret}}, func(context.Context, *client.Call) error {
		t.Error("the function ran")
		return nil
	})
	signedForATask := incomingBatch(t, 2, taskKey)
	signedForATask.Header.Set("X-Xtimer-Batch", taskKey)
	for name, q := range map[string]*http.Request{
		"of another id": incomingBatch(t, 2, "00000000000000ac"), "signed as a task": signedForATask,
	} {
		if w := answer(r, q); w.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if w := answer(r, incomingBatch(t, 0, batchID)); w.Code != http.StatusBadRequest {
		t.Errorf("no tasks: %d %s", w.Code, w.Body)
	}
}

func TestReceiverAndServerWithBatches(t *testing.T) {
	var batches sync.Map
	r := receiver(t, client.ReceiverConfig{Secrets: []string{oldSecret}}, func(_ context.Context, c *client.Call) error {
		batches.Store(c.Batch, true)
		if c.Attempt == 1 && c.Name == "n7" {
			return errors.New("not at first")
		}
		return nil
	})
	target := httptest.NewServer(r)
	defer target.Close()
	url, _ := serve(t, newEngine(t, oldSecret), "127.0.0.1:0", httpapi.ServerConfig{})
	c := dial(t, url)
	due := time.Now().Add(time.Second).Truncate(time.Millisecond)
	var keys []string
	for i := range 20 {
		made, err := c.Create(t.Context(), client.Definition{
			App: "a", Name: fmt.Sprint("n", i), Schedule: client.Schedule{At: due},
			Callback: client.Callback{URL: target.URL, Body: map[string]int{"order": i}, Batch: &client.Batch{Max: 100, Wait: client.Duration(200 * time.Millisecond)}},
			Retry:    client.Retry{Backoff: time.Millisecond},
		})
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, made.Timer.ID+"_"+fmt.Sprint(due.UnixMilli()))
	}
	for i, key := range keys {
		until(t, func() bool {
			task, err := c.Task(t.Context(), key)
			if err != nil || task.Status != client.Succeeded || len(task.Attempts) == 0 {
				return false
			}
			if n := len(task.Attempts); n != 1 && i != 7 || n != 2 && i == 7 || task.Attempts[0].Batch == "" || task.Attempts[0].BatchSize == 0 {
				t.Fatalf("%d: %+v", i, task)
			}
			return true
		})
	}
}

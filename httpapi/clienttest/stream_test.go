package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/httpapi"
	"xtimer/httpapi/client"
)

// TestStreamOutlivesTheServer: tasks are seen as they end, before and after a
// restart, and those that ended meanwhile as well.
func TestStreamOutlivesTheServer(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer target.Close()
	e := newEngine(t)
	url, stop := serve(t, e, "127.0.0.1:0", httpapi.ServerConfig{})
	c := dial(t, url)
	d := hourly("often")
	d.Schedule.Every, d.Callback.URL = 20*time.Millisecond, target.URL
	if _, err := c.Put(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	var said []string
	for task, err := range c.Stream(t.Context(), client.TaskFilter{App: "a"}) {
		var broken *client.Break
		switch {
		case err == nil && task.Status != client.Succeeded:
			t.Fatalf("%+v", task)
		case err == nil:
			if len(said) == 0 || said[len(said)-1] != "task" {
				said = append(said, "task")
			}
			if len(said) == 1 {
				stop()
			}
		case errors.As(err, &broken) && broken.Err != nil:
			said = append(said, "broken")
			serve(t, e, strings.TrimPrefix(url, "http://"), httpapi.ServerConfig{})
		case errors.As(err, &broken):
			said = append(said, "back")
		default:
			t.Fatal(err)
		}
		if len(said) == 4 {
			break
		}
	}
	if got := strings.Join(said, " "); got != "task broken back task" {
		t.Error(got)
	}
}

func TestStreamEnds(t *testing.T) {
	url, _ := serve(t, newEngine(t), "127.0.0.1:0", httpapi.ServerConfig{})
	c := dial(t, url)
	n := 0
	for _, err := range c.Stream(t.Context(), client.TaskFilter{TimerID: "x"}) {
		if n++; !hasCode(err, http.StatusBadRequest) {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	for _, err := range c.Stream(ctx, client.TaskFilter{}) {
		if n++; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if n != 2 {
		t.Errorf("%d errors: one is the last thing it says", n)
	}
}

// TestStreamReadsEvents: what the server says when it is slow, when a reader is,
// and what a newer one may say.
func TestStreamReadsEvents(t *testing.T) {
	opened := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch opened++; opened {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable) // not ready yet
		case 2:
			_, _ = w.Write([]byte(": hello\r\n\r\nevent: news\ndata: {}\n\nevent: gap\ndata: {\"from\":\"2026-11-24T00:00:00.000Z\",\"to\":\"2026-11-24T00:00:01.000Z\",\"due_before\":\"2026-11-23T00:00:00.000Z\",\"count\":3}\n\nevent: task\nid: 4-1_2\ndata: {\"key\":\ndata: \"1_2\"}\n\n:\nid: 5-1_2\n\nevent: task\nid: 6-1_3\ndata: {\"key\":\"cut"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			if id := r.Header.Get("Last-Event-ID"); id != "5-1_2" {
				t.Errorf("it goes on after %q", id)
			}
			_, _ = w.Write([]byte("event: task\ndata: {\"key\":\"1_3\"}\n\n"))
		}
	}))
	s.Config.ErrorLog = nil
	defer s.Close()
	c := dial(t, s.URL)
	var said []string
	for task, err := range c.Stream(t.Context(), client.TaskFilter{}) {
		var gap *client.Gap
		var broken *client.Break
		switch {
		case err == nil:
			said = append(said, task.Key)
		case errors.As(err, &gap):
			said = append(said, "gap")
			if want := "up to 3 tasks due before 2026-11-23T00:00:00.000Z that ended from 2026-11-24T00:00:00.000Z to 2026-11-24T00:00:01.000Z may be missing in the stream"; gap.Error() != want {
				t.Error(gap)
			}
		case errors.As(err, &broken) && broken.Err != nil:
			said = append(said, "broken")
		case errors.As(err, &broken):
			said = append(said, "back")
		}
		if task.Key == "1_3" {
			break
		}
	}
	if got := strings.Join(said, " "); got != "broken back gap 1_2 broken back 1_3" {
		t.Error(got)
	}
}

// TestStreamWithoutAServer: it keeps trying, and says so once.
func TestStreamWithoutAServer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	c := dial(t, "http://"+ln.Addr().String())
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	gaps := 0
	for _, err := range c.Stream(ctx, client.TaskFilter{}) {
		if broken := (*client.Break)(nil); errors.As(err, &broken) {
			gaps++
		}
	}
	if gaps != 1 {
		t.Errorf("it was said %d times", gaps)
	}
}

// roundTrip is an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestStreamNoticesSilence: a connection that is dead without a word. While the
// server's heart beats it is not.
func TestStreamNoticesSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const beats, every = 20, 15 * time.Second
		start := time.Now()
		c, err := client.New("http://xtimer.test", client.WithHTTPClient(&http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			in, out := io.Pipe()
			context.AfterFunc(r.Context(), func() { in.CloseWithError(r.Context().Err()) })
			go func() {
				for range beats {
					time.Sleep(every)
					_, _ = out.Write([]byte(":\n\n"))
				}
			}()
			return &http.Response{StatusCode: 200, Body: in, Request: r}, nil
		})}))
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range c.Stream(t.Context(), client.TaskFilter{}) {
			var broken *client.Break
			if !errors.As(err, &broken) || !strings.Contains(err.Error(), "nothing came") {
				t.Error(err)
			}
			break
		}
		if took := time.Since(start); took != beats*every+45*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

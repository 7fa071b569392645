package httpapi

import (
	"bufio"
	"strings"
	"testing"
	"time"
)

// events reads the events of a stream until it ends.
func (n *testNode) events(path string) (lines <-chan string, hang func()) {
	c := n.raw()
	c.send("GET " + path + " HTTP/1.1\nHost: x\n\n")
	out := make(chan string, 1000)
	go func() {
		defer close(out)
		for in := bufio.NewScanner(c.r); in.Scan(); {
			out <- in.Text()
		}
	}()
	return out, func() { c.Close() }
}

// next is the next line that begins so.
func next(t *testing.T, lines <-chan string, prefix string) string {
	t.Helper()
	late := time.After(10 * time.Second)
	for {
		select {
		case l, ok := <-lines:
			if !ok {
				t.Fatalf("the stream ended before a line with %q", prefix)
			}
			if strings.HasPrefix(l, prefix) {
				return l
			}
		case <-late:
			t.Fatalf("no line with %q within 10 s", prefix)
		}
	}
}

func TestStream(t *testing.T) {
	n := newNode(t)
	n.s.cfg.Heartbeat = 20 * time.Millisecond
	id := n.do("POST", "/v1/timers", hourly("a", "n", "")).want(201).str("id")
	other := n.do("POST", "/v1/timers", hourly("b", "n", "")).want(201).str("id")
	lines, hang := n.events("/v1/tasks/stream?app=a&status=succeeded")
	next(t, lines, "Content-Type: text/event-stream")
	next(t, lines, ": xtimer")
	n.do("POST", "/v1/timers/"+other+"/run", "").want(202)
	key := n.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key")
	next(t, lines, "event: task")
	if l := next(t, lines, "id: "); l != "id: "+key {
		t.Error(l)
	}
	if l := next(t, lines, "data: "); !strings.Contains(l, `"status":"succeeded"`) {
		t.Error(l)
	}
	next(t, lines, ":")

	// The stream notices that its reader has gone when it next writes.
	hang()
	until(t, func() bool { return n.s.stats.streams.Load() == 0 })

	// Another ends with the server.
	lines, _ = n.events("/v1/tasks/stream")
	next(t, lines, ": xtimer")
	ended := make(chan error, 1)
	go func() { ended <- n.stop() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("a stream holds the shutdown up")
	}
	for range lines {
	}
}

func TestStreamRefusesBadFilters(t *testing.T) {
	n := newNode(t)
	n.do("GET", "/v1/tasks/stream?status=x", "").want(400)
	n.do("GET", "/v1/tasks/stream?limit=7", "").want(400)
	n.do("HEAD", "/v1/tasks/stream", "").want(200)
}

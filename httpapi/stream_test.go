package httpapi

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httputil"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"xtimer/tier/servertest"

	"xtimer/engine"
)

// events reads the events of a stream until it ends; headers are lines.
func (n *testNode) events(path string, headers ...string) (lines <-chan string, hang func()) {
	c := n.raw()
	c.send("GET " + path + " HTTP/1.1\nHost: x\n" + strings.Join(append(headers, "\n"), "\n"))
	out := make(chan string, 1000)
	go func() {
		defer close(out)
		for {
			line, err := c.r.ReadString('\n')
			if line = strings.TrimSpace(line); line == "" || err != nil {
				break
			}
			out <- line
		}
		for in := bufio.NewScanner(httputil.NewChunkedReader(c.r)); in.Scan(); {
			out <- in.Text()
		}
	}()
	return out, func() { c.Close() }
}

// next is the next line that begins so.
func next(t *testing.T, lines <-chan string, prefix string) string {
	t.Helper()
	late := time.After(time.Minute)
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
			t.Fatalf("no line with %q within a minute", prefix)
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
	next(t, lines, "retry: 2000")
	next(t, lines, "id: ")
	n.do("POST", "/v1/timers/"+other+"/run", "").want(202)
	key := n.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key")
	next(t, lines, "event: task")
	if l := next(t, lines, "id: "); !strings.HasSuffix(l, "-"+key) {
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
	case <-time.After(30 * time.Second):
		t.Error("a stream holds the shutdown up")
	}
	for range lines {
	}
}

// TestStreamsLeaveRoomForLists: streams, however many are open, take half of what answers
// of the app may take: pages are still to be had.
func TestStreamsLeaveRoomForLists(t *testing.T) {
	limit := debug.SetMemoryLimit(128 << 20) // a budget of 16 MiB
	n := newNode(t)
	debug.SetMemoryLimit(limit)
	opened := 0
	for range 20 {
		lines, hang := n.events("/v1/tasks/stream")
		defer hang()
		if strings.HasPrefix(next(t, lines, "HTTP/1.1 "), "HTTP/1.1 200") {
			opened++
		}
	}
	if opened != 4 {
		t.Errorf("%d streams are open", opened)
	}
	n.do("GET", "/v1/timers", "").want(200)
	n.do("GET", "/v1/tasks", "").want(200)
}

func TestStreamRefusesBadFilters(t *testing.T) {
	n := newNode(t)
	n.do("GET", "/v1/tasks/stream?status=x", "").want(400)
	n.do("GET", "/v1/tasks/stream?limit=7", "").want(400)
	n.do("GET", "/v1/tasks/stream?last_event_id=x", "").want(400)
	n.do("GET", "/v1/tasks/stream", "", "Last-Event-ID", "1-2").want(400)
	n.do("HEAD", "/v1/tasks/stream?last_event_id=1", "").want(200)
	n.do("HEAD", "/v1/tasks/stream", "").want(200)
}

// A reader that is cut three times has each of 1,000 tasks once, in order.
func TestStreamGoesOn(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	id := n.do("POST", "/v1/timers", hourly("a", "n", "")).want(201).str("id")
	const all = 1000
	var want, got []string
	last, more := "", []string(nil)
	lines, hang := n.events("/v1/tasks/stream?app=a")
	last = next(t, lines, "id: ")
	read := func(until int) {
		for len(got) < until {
			if l := next(t, lines, "event: "); l != "event: task" {
				t.Fatal(l)
			}
			last = next(t, lines, "id: ")
			_, key, _ := strings.Cut(last, "-")
			got = append(got, key)
		}
	}
	for i := range all {
		if i%300 == 200 {
			read(i - 100)
			hang()
		}
		if i%300 == 0 && i > 0 {
			id := strings.TrimPrefix(last, "id: ")
			if more = []string{"Last-Event-ID: " + id}; i == 600 { // once by the parameter
				more = nil
			}
			lines, hang = n.events("/v1/tasks/stream?app=a&last_event_id="+id, more...)
		}
		want = append(want, n.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key"))
	}
	read(all)
	hang()
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("%d tasks were told of %d", len(got), len(want))
	}
}

// TestStreamIsLeft: a stream whose reader has gone ends at once, and does not first read
// all that the reader missed.
func TestStreamIsLeft(t *testing.T) {
	n := newNode(t)
	id := n.do("POST", "/v1/timers", hourly("a", "n", "")).want(201).str("id")
	tasks := n.e.Subscribers().Subscribe(t.Context(), engine.TaskFilter{}, nil)
	for range 3 {
		key := n.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key")
		until(t, func() bool { return n.do("GET", "/v1/tasks/"+key, "").str("status") == "succeeded" })
	}
	gone, w := io.Pipe()
	gone.Close()
	n.s.stream(t.Context(), bufio.NewWriterSize(w, 16), tasks, nil)
	if _, more, err := tasks.Next(t.Context()); !more || err != nil {
		t.Errorf("the stream read all tasks for a reader that had gone: %v", err)
	}
}

// TestStreamOfAnOldClient: a client of HTTP/1.0 knows no chunks, and reads an answer
// without an end until the connection ends.
func TestStreamOfAnOldClient(t *testing.T) {
	n := newNode(t)
	id := n.do("POST", "/v1/timers", hourly("a", "n", "")).want(201).str("id")
	ask := func(path string) (*raw, *http.Response) {
		t.Helper()
		c := n.raw()
		c.send("GET " + path + " HTTP/1.0\nHost: x\nConnection: keep-alive\n\n")
		p, err := http.ReadResponse(c.r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if p.StatusCode != 200 || p.TransferEncoding != nil || p.ContentLength >= 0 || !p.Close {
			t.Errorf("%s: %+v", path, p)
		}
		return c, p
	}
	c, p := ask("/v1/tasks/stream?app=a")
	if got := p.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("the stream has the type %q", got)
	}
	lines := bufio.NewReader(p.Body)
	if l, err := lines.ReadString('\n'); l != ": xtimer\n" {
		t.Fatalf("the stream begins with %q, %v", l, err)
	}
	key := n.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key")
	for l := ""; !strings.Contains(l, key); {
		var err error
		if l, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	until(t, func() bool { // its writer finds that the reader has gone
		n.do("POST", "/v1/timers/"+id+"/run", "")
		return n.s.stats.streams.Load() == 0
	})

	c, p = ask("/v1/admin/verify?from=" + strconv.FormatInt(time.Now().Add(-time.Hour).UnixMilli(), 10))
	defer c.Close()
	b, err := io.ReadAll(p.Body)
	if err != nil || !strings.HasPrefix(string(b), "{") || !strings.Contains(string(b), `"verdict"`) || !strings.HasSuffix(string(b), "}\n") {
		t.Errorf("the verdict is %q, %v", b, err)
	}
}

// A stream has what ends at any node, also at one that joins, and one that comes back misses
// nothing, whatever node it comes back to.
func TestStreamOfACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, answers(200), ServerConfig{Heartbeat: 20 * time.Millisecond})
	var ids []string
	for i, n := range c.n {
		ids = append(ids, n.timer("a", strconv.Itoa(i), ""))
	}
	run := func(i int) (key string) {
		t.Helper()
		key = c.n[0].do("POST", "/v1/timers/"+ids[i]+"/run", "").want(202).str("key")
		until(t, func() bool { return c.n[0].do("GET", "/v1/tasks/"+key, "").str("status") == "succeeded" })
		return key
	}
	told := func(lines <-chan string, key string) (id string) {
		t.Helper()
		for !strings.HasSuffix(id, "-"+key) {
			next(t, lines, "event: task")
			id = next(t, lines, "id: ")
			next(t, lines, "data: ")
		}
		return strings.TrimPrefix(id, "id: ")
	}
	lines, hang := c.n[1].events("/v1/tasks/stream?app=a")
	next(t, lines, "id: ")
	last := ""
	for i := range ids {
		last = told(lines, run(i))
	}
	hang()
	var missed []string
	for i := range ids {
		missed = append(missed, run(i))
	}
	lines, hang = c.n[2].events("/v1/tasks/stream?app=a", "Last-Event-ID: "+last)
	defer hang()
	for len(missed) > 0 {
		next(t, lines, "event: task")
		_, key, _ := strings.Cut(next(t, lines, "id: "), "-")
		missed = slices.DeleteFunc(missed, func(m string) bool { return m == key })
	}
	// A place is never before an event that the reader has.
	newest := told(lines, run(0))
	for range 3 {
		next(t, lines, ":")
		select {
		case l := <-lines:
			if id, ok := strings.CutPrefix(l, "id: "); ok && id < newest[:13] {
				t.Errorf("place %s after event %s", id, newest)
			}
		case <-time.After(time.Second):
		}
	}
	// A node that is gone may have had more.
	if err := c.table.Leave(t.Context(), c.n[0].row.Life); err != nil {
		t.Fatal(err)
	}
	c.n[0].client.CloseIdleConnections()
	if err := c.n[0].stop(); err != nil {
		t.Fatal(err)
	}
	next(t, lines, "event: gap")
}

// A stream that begins while a node cannot be reached tells what ended there, or that there may be a gap.
func TestStreamBeginsWithoutANode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, answers(200), ServerConfig{Heartbeat: 20 * time.Millisecond})
	a, b := c.n[0], c.n[1]
	id := b.timer("a", "x", "")
	way := servertest.NewProxy(t, b.address)
	way.Cut()
	b.address = way.Addr()
	lines, hang := a.events("/v1/tasks/stream?app=a")
	defer hang()
	<-lines // the stream has begun, without b
	run := func() string {
		key := b.do("POST", "/v1/timers/"+id+"/run", "").want(202).str("key")
		until(t, func() bool { return b.do("GET", "/v1/tasks/"+key, "").str("status") == "succeeded" })
		return key
	}
	first := run()
	way.Heal()
	second := run()
	seen := ""
	end := time.After(20 * time.Second)
	for !strings.Contains(seen, second) {
		select {
		case l := <-lines:
			if !strings.HasPrefix(l, ":") && l != "" {
				seen += l + "\n"
			}
		case <-end:
			t.Fatal("not even the second", seen)
		}
	}
	if !strings.Contains(seen, first) && !strings.Contains(seen, "gap") {
		t.Errorf("the stream has the task %s, and neither %s, which ended before it, nor a gap", second, first)
	}
}

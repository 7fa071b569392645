package callback

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
)

// batchCall is a call of so many tasks, changed one by one.
func batchCall(url string, n int, change func(i int, m *engine.Call)) *engine.Call {
	b := &engine.BatchCall{ID: 0xabc}
	for i := range n {
		m := testCall(url, func(tm *engine.Timer) {
			tm.ID, tm.Name = engine.TimerID(100+i), fmt.Sprint("order-", i)
			tm.Callback.Batch = &engine.Batch{Max: 1000}
		})
		m.Key.Timer = m.Timer.ID
		if change != nil {
			change(i, m)
		}
		b.Calls = append(b.Calls, m)
	}
	c := *b.Calls[0]
	c.Batch = b
	return &c
}

func TestBatchOnTheWire(t *testing.T) {
	call := batchCall("http://a.example/x?y", 3, func(i int, m *engine.Call) {
		cb := &m.Timer.Callback
		switch i {
		case 0:
			cb.Body, cb.HasBody, cb.BodyKind = []byte(`{"n":1}`), true, engine.BodyJSON
		case 1:
			cb.Body, cb.HasBody, cb.BodyKind = []byte("text"), true, engine.BodyText
			m.Attempt, m.Redelivered, m.Fence = 2, true, 7
		}
	})
	cb, err := New(Config{Secrets: map[string][]string{"billing": {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer cb.Close()
	to, err := cb.target("http://a.example")
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(string(cb.appendBatch(&scratch{}, call, to, "/x?y", time.Unix(1763658000, 0))), "\r\n\r\n")
	const want = `{"tasks":[` +
		`{"task":"100_1763658000250","timer":"100","name":"order-0","due":"2025-11-20T17:00:00.250Z","attempt":1,"redelivered":false,"body":{"n":1}},` +
		`{"task":"101_1763658000250","timer":"101","name":"order-1","due":"2025-11-20T17:00:00.250Z","attempt":2,"redelivered":true,"fence":"107.7","body_base64":"dGV4dA=="},` +
		`{"task":"102_1763658000250","timer":"102","name":"order-2","due":"2025-11-20T17:00:00.250Z","attempt":1,"redelivered":false}]}`
	if body != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
	for _, h := range []string{
		"POST /x?y HTTP/1.1", "Content-Type: application/json", "X-Xtimer-Batch: 0000000000000abc", "X-Xtimer-Tasks: 3", "X-Xtimer-App: billing",
		fmt.Sprint("Content-Length: ", len(body)), "webhook-id: 0000000000000abc", "webhook-signature: v1,",
	} {
		if !strings.Contains(head, h) {
			t.Errorf("no %q in %s", h, head)
		}
	}
	if strings.Contains(head, "Idempotency-Key") || strings.Contains(head, "X-Xtimer-Task:") {
		t.Errorf("a batch has the key of a task: %s", head)
	}
}

// A batch is written into buffers that are large enough at once, and that the next batch uses.
func TestBuffersOfABatch(t *testing.T) {
	url := benchReceiver(t)
	call := batchCall(url, 1000, nil)
	cb, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer cb.Close()
	to, err := cb.target(url)
	if err != nil {
		t.Fatal(err)
	}
	s := &scratch{}
	if n := testing.AllocsPerRun(10, func() {
		s.body, s.request = nil, nil
		s.request = cb.appendBatch(s, call, to, "/", time.Now())
	}); n > 10 { // two buffers, and what the headers need
		t.Errorf("%v allocations, of %d bytes for %d", n, cap(s.body), len(s.body))
	}
	kept := 0
	for try := 0; kept == 0 && try < 100; try++ { // with the race detector a pool forgets some
		if o := cb.Call(call); o.Code != http.StatusOK {
			t.Fatalf("%+v", o)
		}
		s := cb.batches.Get().(*scratch)
		kept = min(cap(s.request), cap(s.body))
		if s := cb.scratch.Get().(*scratch); cap(s.request) > 0 {
			t.Errorf("a call of one task gets a buffer of %d bytes", cap(s.request))
		}
	}
	if kept <= maxScratch {
		t.Errorf("of its buffers %d bytes are kept", kept)
	}
}

// The bound of a member's size holds for each kind of body, and the longest of all numbers.
func TestMemberBytes(t *testing.T) {
	for kind, body := range map[engine.BodyKind]string{engine.BodyNone: "", engine.BodyJSON: `{"a":[1,2]}`, engine.BodyText: "some text", engine.BodyBase64: "\x00\x01\x02\x03"} {
		m := testCall("http://a/", func(tm *engine.Timer) {
			tm.ID, tm.Name = 1<<63-1, "计费<>&\"\\ x\u2028"
			tm.Callback.Body, tm.Callback.HasBody, tm.Callback.BodyKind = []byte(body), kind != engine.BodyNone, kind
		})
		m.Key, m.Attempt, m.Fence = engine.Key{Timer: m.Timer.ID, Due: engine.MaxDue}, 1<<62, 1<<63
		b := appendMember(nil, m, &scratch{})
		if bound := engine.MemberBytes(m.Timer); len(b)+1 > bound || !json.Valid(b) {
			t.Errorf("%d bytes, at most %d were said: %s", len(b), bound, b)
		}
	}
}

func TestAnswersToBatches(t *testing.T) {
	const one, two = "101_1763658000250", "102_1763658000250"
	many := make([]string, 1000)
	for i := range many {
		many[i] = fmt.Sprintf(`{"task":"%d_1763658000250","status":503,"error":%q}`, 100+i, strings.Repeat("e", 1000))
	}
	for name, f := range map[string]struct {
		code    int
		answer  string
		class   engine.Class
		word    string
		failed  int
		members map[string]engine.Outcome
	}{
		"empty":       {200, "", engine.ClassOK, "", 0, nil},
		"text":        {200, "ok", engine.ClassOK, "", 0, nil},
		"no failures": {200, `{"done":3}`, engine.ClassOK, "", 0, nil},
		"null":        {200, `{"failures":null}`, engine.ClassOK, "", 0, nil},
		"two": {200, `{"failures":[{"task":"` + one + `","status":503,"error":"busy","retry_after":"5s"},{"task":"` + two + `","status":404}]}`, engine.ClassOK, "", 2, map[string]engine.Outcome{
			one: {Class: engine.ClassRetry, Code: 503, ErrorClass: wordStatus, Response: []byte("busy"), RetryAfter: 5 * time.Second},
			two: {Class: engine.ClassRejected, Code: 404, ErrorClass: wordStatus},
		}},
		"without a status": {200, `{"failures":[{"task":"` + one + `","retry_after":250}]}`, engine.ClassOK, "", 1, map[string]engine.Outcome{
			one: {Class: engine.ClassRetry, Code: 500, ErrorClass: wordStatus, RetryAfter: 250 * time.Millisecond},
		}},
		"a good status":     {200, `{"failures":[{"task":"` + one + `","status":200}]}`, engine.ClassOK, "", 1, map[string]engine.Outcome{one: {Class: engine.ClassOK, Code: 200}}},
		"a stranger":        {200, `{"failures":[{"task":"99_1763658000250","status":503}]}`, engine.ClassUnknown, wordBadAnswer, 0, nil},
		"no key":            {200, `{"failures":[{"status":503}]}`, engine.ClassUnknown, wordBadAnswer, 0, nil},
		"another form":      {200, `{"failures":{"` + one + `":503}}`, engine.ClassUnknown, wordBadAnswer, 0, nil},
		"half":              {200, `{"failures":[`, engine.ClassUnknown, wordBadAnswer, 0, nil},
		"status 7":          {200, `{"failures":[{"task":"` + one + `","status":7}]}`, engine.ClassUnknown, wordBadAnswer, 0, nil},
		"retry after never": {200, `{"failures":[{"task":"` + one + `","retry_after":"never"}]}`, engine.ClassUnknown, wordBadAnswer, 0, nil},
		"all of 1,000":      {200, `{"failures":[` + strings.Join(many, ",") + `]}`, engine.ClassOK, "", 1000, nil},
		"too large":         {200, `{"x":"` + strings.Repeat("x", maxBatchBody) + `"}`, engine.ClassUnknown, wordBadAnswer, 0, nil},
		"byte order mark":   {200, "\ufeff{\"failures\":[{\"task\":\"" + one + "\"}]}", engine.ClassOK, "", 1, nil},
		"503":               {503, `{"failures":[]}`, engine.ClassRetry, wordStatus, 0, nil},
		"400":               {400, "why", engine.ClassRejected, wordStatus, 0, nil},
	} {
		for _, length := range []string{"chunked", "with a length"} {
			t.Run(name+", "+length, func(t *testing.T) {
				head := fmt.Sprintf("HTTP/1.1 %d %s\r\n", f.code, http.StatusText(f.code))
				text := head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(f.answer), f.answer)
				if length == "chunked" {
					text = head + "Transfer-Encoding: chunked\r\n\r\n"
					if f.answer != "" {
						text += fmt.Sprintf("%x\r\n%s\r\n", len(f.answer), f.answer)
					}
					text += "0\r\n\r\n"
				}
				p := listen(t, nil, answering(text))
				call := batchCall(p.url, 1000, nil)
				o := newCaller(t, Config{}).Call(call)
				expect(t, o, f.class, f.word)
				if len(call.Batch.Failures) != f.failed {
					t.Errorf("%d failures: %+v", len(call.Batch.Failures), call.Batch.Failures)
				}
				for k, want := range f.members {
					key, _ := engine.ParseKey(k)
					if got := call.Batch.Failures[key]; !reflect.DeepEqual(got, want) {
						t.Errorf("%s: got %+v, want %+v", k, got, want)
					}
				}
			})
		}
	}
}

// A compressed answer may name failures: without reading it nobody can say.
func TestACompressedAnswerToABatch(t *testing.T) {
	for coding, want := range map[string]string{"gzip": wordBadAnswer, "identity": "", "Identity": ""} {
		p := listen(t, nil, answering("HTTP/1.1 200 OK\r\nContent-Encoding: "+coding+"\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00"))
		if o := newCaller(t, Config{}).Call(batchCall(p.url, 2, nil)); o.ErrorClass != want {
			t.Errorf("%s: %+v", coding, o)
		}
	}
	p := listen(t, nil, answering("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"))
	expect(t, newCaller(t, Config{}).Call(batchCall(p.url, 2, nil)), engine.ClassOK, "")
}

// leaving is the gate of a call whose first task is not wanted any more.
type leaving struct{ b *engine.BatchCall }

func (l *leaving) Enter() bool {
	if len(l.b.Calls) == 3 {
		l.b.Calls = l.b.Calls[1:]
	}
	return true
}
func (l *leaving) Wait() (time.Duration, bool) { return 0, true }
func (l *leaving) Stay()                       {}
func (l *leaving) Leave(bool)                  {}

func TestABatchIsWrittenWithoutThoseThatLeft(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body struct {
			Tasks []struct{ Name string }
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		got = append(got, fmt.Sprint(r.RemoteAddr, r.Header.Get("X-Xtimer-Tasks"), body.Tasks))
	}))
	defer server.Close()
	cb := newCaller(t, Config{})
	for range 2 { // over a new connection, and over one that was kept
		call := batchCall(server.URL, 3, nil)
		call.Gate = &leaving{call.Batch}
		expect(t, cb.Call(call), engine.ClassOK, "")
	}
	if len(got) != 2 || got[0] != got[1] || !strings.HasSuffix(got[0], "2[{order-1} {order-2}]") {
		t.Errorf("got %q", got)
	}
}

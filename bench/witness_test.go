package bench

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/bench/checker"
)

// witness writes the three logs of a run: it is the receiver, and is told what
// was asked and what was broken.
type witness struct {
	url string

	mu      sync.Mutex // guards all below
	logs    checker.Logs
	batches int               // calls of many tasks
	words   map[string]string // see word
	shas    map[string]string // by the request in words
}

// The names of timers begin with what the witness answers to their calls.
const (
	takes    = "takes"    // 200
	stumbles = "stumbles" // 503 the first time, then 200
	drops    = "drops"    // hangs up on the first attempt, then 200
	refuses  = "refuses"  // 404
	fails    = "fails"    // 500, always
)

func startWitness(t testing.TB) *witness {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &witness{url: "http://" + ln.Addr().String() + "/call", words: map[string]string{}, shas: map[string]string{}}
	quiet := log.New(io.Discard, "", 0) // it hangs up on purpose
	s := &fasthttp.Server{Handler: w.take, NoDefaultDate: true, NoDefaultServerHeader: true, Logger: quiet}
	go s.Serve(ln)
	t.Cleanup(func() { s.Shutdown() })
	return w
}

func (w *witness) take(c *fasthttp.RequestCtx) {
	a := checker.Arrived{At: time.Now().UnixMicro()}
	h := &c.Request.Header
	if len(h.Peek("X-Xtimer-Batch")) > 0 {
		w.takeBatch(c, a.At)
		return
	}
	a.App, a.Name = string(h.Peek("X-Xtimer-App")), string(h.Peek("X-Xtimer-Name"))
	timer, due, _ := strings.Cut(string(h.Peek("Idempotency-Key")), "_")
	a.Timer = timer
	a.Due, _ = strconv.ParseInt(due, 10, 64)
	if key := timer + "_" + due; string(h.Peek("X-Xtimer-Task")) != key || string(h.Peek("X-Xtimer-Timer")) != timer ||
		string(h.Peek("X-Xtimer-Due")) != time.UnixMilli(a.Due).UTC().Format("2006-01-02T15:04:05.000Z") {
		a.Timer += " by one header, but not by the others" // a phantom
	}
	a.Attempt, _ = strconv.Atoi(string(h.Peek("X-Xtimer-Attempt")))
	a.Redelivered = len(h.Peek("X-Xtimer-Redelivered")) > 0
	a.RequestSHA = sha(string(h.Method()), string(h.Peek("X-Owner")), string(h.ContentType()), c.PostBody())
	kind, _, _ := strings.Cut(a.Name, "-")
	a.Done = time.Now().UnixMicro() // before it hangs up: from then on the other side knows
	switch {
	case kind == refuses:
		a.Code = 404
	case kind == fails:
		a.Code = 500
	case kind == stumbles && a.Attempt == 1:
		a.Code = 503
	case kind == drops && a.Attempt == 1:
		c.Conn().Close()
	default:
		a.Code = 200
	}
	if a.Code != 0 {
		c.SetStatusCode(a.Code)
	}
	w.mu.Lock()
	w.logs.Arrived = append(w.logs.Arrived, a)
	w.mu.Unlock()
}

// takeBatch notes each task of a batch as an arrival, with what is answered to it. Who would
// hang up on a task alone fails it.
func (w *witness) takeBatch(c *fasthttp.RequestCtx, at int64) {
	h := &c.Request.Header
	w.mu.Lock()
	defer w.mu.Unlock()
	tasks, ok := w.members(c.PostBody())
	if !ok || string(h.Peek("X-Xtimer-Tasks")) != strconv.Itoa(len(tasks)) || len(h.Peek("Idempotency-Key")) > 0 {
		tasks = append(tasks, member{Timer: "a batch that is none"}) // a phantom
	}
	type failure struct {
		Task   string `json:"task"`
		Status int    `json:"status"`
	}
	var failures []failure
	w.batches++
	app := w.word(h.Peek("X-Xtimer-App"))
	head := fmt.Sprintf("%s\n%s\n%s\n", h.Method(), h.Peek("X-Owner"), h.ContentType())
	for _, t := range tasks {
		a := checker.Arrived{Timer: t.Timer, Due: t.Due.UnixMilli(), App: app, Name: t.Name, Attempt: t.Attempt, Redelivered: t.Redelivered, At: at, Code: 200}
		if t.Task != t.Timer+"_"+strconv.FormatInt(a.Due, 10) {
			a.Timer += " by one field, but not by the others" // likewise
		}
		a.RequestSHA = w.shaOf(head, t.Body)
		switch kind, _, _ := strings.Cut(a.Name, "-"); {
		case kind == refuses:
			a.Code = 404
		case kind == fails:
			a.Code = 500
		case (kind == stumbles || kind == drops) && a.Attempt == 1:
			a.Code = 503
		}
		if a.Code != 200 {
			failures = append(failures, failure{t.Task, a.Code})
		}
		a.Done = time.Now().UnixMicro()
		w.logs.Arrived = append(w.logs.Arrived, a)
	}
	if failures != nil {
		out, _ := json.Marshal(map[string]any{"failures": failures})
		c.SetBody(out)
	}
}

// member is a task of a batch.
type member struct {
	Task, Timer, Name string
	Due               time.Time
	Attempt           int
	Redelivered       bool
	Body              []byte `json:"body_base64"`
}

// members reads the tasks of a batch. Those that are written as xtimer writes them are
// not left to encoding/json: with it the witness took 47 % of a core at 72,000 tasks a second, and takes 19 % at
// 75,000. mu is held.
func (w *witness) members(body []byte) (tasks []member, ok bool) {
	rest, ok := bytes.CutPrefix(body, []byte(`{"tasks":[`))
	for ok && len(rest) > 2 {
		var m member
		if m, rest, ok = w.member(bytes.TrimPrefix(rest, []byte(","))); ok {
			tasks = append(tasks, m)
		}
	}
	if ok && string(rest) == "]}" {
		return tasks, true
	}
	var b struct{ Tasks []member }
	err := json.Unmarshal(body, &b)
	return b.Tasks, err == nil
}

// member reads the first task; ok is false if it is written in another form. mu is held.
func (w *witness) member(b []byte) (m member, rest []byte, ok bool) {
	var fields [7][]byte
	rest, ok = b, true
	for i, end := range [...]string{`{"task":"`, `","timer":"`, `","name":"`, `","due":"`, `","attempt":`, `,"redelivered":`, `,"body_base64":"`} {
		var found bool
		fields[i], rest, found = bytes.Cut(rest, []byte(end))
		ok = ok && found
	}
	body, rest, found := bytes.Cut(rest, []byte(`"}`))
	if ok = ok && found && len(fields[0]) == 0 && !bytes.Contains(b[:len(b)-len(rest)], []byte(`\`)); !ok {
		return m, nil, false
	}
	m = member{Task: string(fields[1]), Timer: w.word(fields[2]), Name: w.word(fields[3]), Redelivered: string(fields[6]) == "true"}
	var errs [3]error
	m.Due, errs[0] = time.Parse(time.RFC3339, string(fields[4]))
	m.Attempt, errs[1] = strconv.Atoi(string(fields[5]))
	m.Body, errs[2] = base64.StdEncoding.AppendDecode(nil, body)
	return m, rest, errors.Join(errs[:]...) == nil
}

// word is a string of which there is one for all calls that have it. mu is held.
func (w *witness) word(b []byte) string {
	s, ok := w.words[string(b)]
	if !ok {
		s = string(b)
		w.words[s] = s
	}
	return s
}

// shaOf is sha of a request with a head, of which there are few. mu is held.
func (w *witness) shaOf(head string, body []byte) string {
	key := head + string(body)
	s, ok := w.shas[key]
	if !ok {
		sum := sha256.Sum256([]byte(key))
		s = hex.EncodeToString(sum[:8])
		w.shas[key] = s
	}
	return s
}

// sha is of what an owner says of a request.
func sha(method, owner, contentType string, body []byte) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s", method, owner, contentType, body))
	return hex.EncodeToString(sum[:8])
}

func (w *witness) asked(a checker.Asked) {
	w.mu.Lock()
	w.logs.Asked = append(w.logs.Asked, a)
	w.mu.Unlock()
}

func (w *witness) broken(b checker.Broken) {
	w.mu.Lock()
	w.logs.Broken = append(w.logs.Broken, b)
	w.mu.Unlock()
}

// rate is how many calls arrived in the last second.
func (w *witness) rate() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	since := time.Now().Add(-time.Second).UnixMicro()
	for i := len(w.logs.Arrived) - 1; i >= 0 && w.logs.Arrived[i].At > since; i-- {
		n++
	}
	return n
}

package bench

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

	mu   sync.Mutex // guards all below
	logs checker.Logs
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
	w := &witness{url: "http://" + ln.Addr().String() + "/call"}
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
	var b struct {
		Tasks []struct {
			Task, Timer, Name string
			Due               time.Time
			Attempt           int
			Redelivered       bool
			Body              []byte `json:"body_base64"`
		}
	}
	err := json.Unmarshal(c.PostBody(), &b)
	if err != nil || string(h.Peek("X-Xtimer-Tasks")) != strconv.Itoa(len(b.Tasks)) || len(h.Peek("Idempotency-Key")) > 0 {
		b.Tasks[0].Timer += " in a batch that is none" // a phantom
	}
	type failure struct {
		Task   string `json:"task"`
		Status int    `json:"status"`
	}
	var failures []failure
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range b.Tasks {
		a := checker.Arrived{Timer: t.Timer, Due: t.Due.UnixMilli(), App: string(h.Peek("X-Xtimer-App")), Name: t.Name, Attempt: t.Attempt, Redelivered: t.Redelivered, At: at, Code: 200}
		if t.Task != fmt.Sprintf("%s_%d", t.Timer, a.Due) {
			a.Timer += " by one field, but not by the others" // likewise
		}
		a.RequestSHA = sha(string(h.Method()), string(h.Peek("X-Owner")), string(h.ContentType()), t.Body)
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

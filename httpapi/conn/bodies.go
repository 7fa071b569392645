package conn

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/httpapi/problem"
)

// Bodies bound what the bodies of requests take of the memory.
//
// fasthttp makes room for a whole body when it has read the head of its request, before
// a handler looks at a token: 200 connections that announced batches of 8 MiB and sent
// 1 KB of each took 1.7 GB. So a body of more than SmallBody counts from its head on
// until its request is answered. All bodies together have a budget, those of one app
// half of it. Beyond the budget a request gets 503, and one whose token is refused the
// answer that says so, before its body is read.
type Bodies struct {
	budget *Budget
	n      atomic.Int64 // entries of of
	mu     sync.Mutex   // guards of
	// of are the bodies that are being read. fasthttp tells of a head, of its request and
	// of its failure by the same pointer. It does not tell of every failure: see sweep.
	of map[*fasthttp.RequestHeader]Arrival
}

// Arrival is a body that is on its way, or there.
type Arrival struct {
	app     string
	bytes   int64
	since   time.Time
	Refused error // the body is not to be read
}

// SmallBody is the size up to which a body is not counted.
const SmallBody = 64 << 10

var errBodiesFull = &problem.Problem{
	Status: fasthttp.StatusServiceUnavailable, Code: "bodies_full", Retry: 1,
	Detail: "the requests that are being received use all the memory set aside for them: send a smaller batch, or repeat the request later",
}

// NewBodies are none so far.
func NewBodies() *Bodies {
	return &Bodies{budget: NewBudget(), of: make(map[*fasthttp.RequestHeader]Arrival)}
}

// Begin counts the body that follows a head, at most limit bytes. It reports whether the
// body may be read.
func (a *Bodies) Begin(h *fasthttp.RequestHeader, limit int, app string, refused error, patience time.Duration) bool {
	n := h.ContentLength()
	if n == -1 { // chunked
		n = limit
	}
	if n <= SmallBody || n > limit {
		return true // fasthttp refuses what is too large
	}
	a.Release(a.End(h)) // fasthttp has told nothing of the former request
	x := Arrival{app: app, bytes: int64(n), since: time.Now(), Refused: refused}
	if refused == nil && !a.budget.Hold(app, x.bytes, false) {
		if a.sweep(patience); !a.budget.Hold(app, x.bytes, false) {
			x.Refused = errBodiesFull
		}
	}
	if x.Refused != nil {
		x.bytes = 0
	}
	a.mu.Lock()
	a.of[h] = x
	a.mu.Unlock()
	a.n.Add(1)
	return x.Refused == nil
}

// End takes an arrival out: its bytes count until they are released.
func (a *Bodies) End(h *fasthttp.RequestHeader) (x Arrival) {
	if a.n.Load() == 0 {
		return Arrival{}
	}
	a.mu.Lock()
	x, ok := a.of[h]
	delete(a.of, h)
	a.mu.Unlock()
	if ok {
		a.n.Add(-1)
	}
	return x
}

// Refused is why the body that follows a head is not to be read; nil: the body may be read.
func (a *Bodies) Refused(h *fasthttp.RequestHeader) error {
	if a.n.Load() == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[h].Refused
}

// Held is how many bodies are on their way, and how many bytes are counted of all.
func (a *Bodies) Held() (bodies, bytes int64) { return a.n.Load(), a.budget.Held() }

// Release counts the bytes of an arrival no more.
func (a *Bodies) Release(x Arrival) {
	if x.bytes > 0 {
		a.budget.Release(x.app, x.bytes)
	}
}

// sweep forgets the bodies whose time to arrive is over.
func (a *Bodies) sweep(patience time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for h, x := range a.of {
		if time.Since(x.since) > patience {
			delete(a.of, h)
			a.n.Add(-1)
			a.Release(x)
		}
	}
}

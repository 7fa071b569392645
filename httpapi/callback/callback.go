package callback

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/failpoint"
)

// Caller makes the calls: one HTTP/1.1 request each, over reused connections.
//
// Caller must know whether a byte of an attempt can have reached its target, and
// when. fasthttp's HostClient owns its connections and hides both facts. So this
// package keeps the connections (target.go), appends a request to one buffer and
// writes the buffer to the socket in one write (request.go), and fasthttp reads the
// response. This is also faster: see BenchmarkCallback.
//
// Caller never uses a proxy from the environment and never follows a redirect.
type Caller struct {
	cfg     Config
	agent   string
	egress  *egress
	signers map[string][]*signer
	tls     *tls.Config

	scratch sync.Pool    // *scratch, of calls of one task
	batches sync.Pool    // *scratch, of batches
	idle    atomic.Int64 // kept connections of all targets

	mu      sync.RWMutex
	targets map[string]*target // by scheme://host:port, as written
	sweeper *time.Timer        // runs while there are targets; nil before the first
	closed  bool
}

var _ engine.Caller = (*Caller)(nil)

// Config of a Caller. Zero values mean the defaults stated.
type Config struct {
	// Version goes into User-Agent; default "dev".
	Version string
	// Secrets by app: "whsec_" and the base64 of 24 to 64 bytes each. Several
	// while one is being rotated: every one signs.
	Secrets map[string][]string
	// Secret returns the value that a secret of an app has now; default: there is none.
	Secret func(app, name string) (value string, ok bool)
	// MaxConnsPerHost bounds the connections to one scheme://host:port; a call
	// beyond waits, within its timeout. Default 512.
	MaxConnsPerHost int
	// MaxIdleConns bounds the kept connections to all targets; default 4096.
	MaxIdleConns int
	// Egress says which addresses may be called.
	Egress Egress
	// RootCAs that targets are verified against; default the system's.
	RootCAs *x509.CertPool
	// Resolver of names; default net.DefaultResolver.
	Resolver *net.Resolver
	// Log gets a line at debug level for each call without an answer, with the
	// error that an outcome has only a word for; default: none.
	Log *slog.Logger
}

const (
	// maxIdle is how long a kept connection may wait for its next request:
	// less than the 5 s after which Node.js, the most impatient of the common
	// servers, hangs up.
	maxIdle = 4 * time.Second
	// maxIdleOnce is the same for an at_most_once call, which a connection that its
	// target is about to close would leave unknown: no server hangs up so soon.
	maxIdleOnce = time.Second
	// forgetAfter is how long a target without connections is remembered.
	forgetAfter = time.Minute
	sweepEvery  = maxIdle / 8
	// maxTargets that are remembered; those beyond get a connection a call.
	maxTargets = 16384

	maxHead     = 16 << 10 // of an answer's headers
	maxBody     = 64 << 10 // of an answer's body that is read
	maxResponse = 1 << 10  // of an answer's body that is handed on
	maxInterim  = 16       // 1xx answers before the final one
	maxScratch  = 64 << 10 // of a request's buffer that is kept for the next
	// maxBatchScratch is the same for a batch. A batch of 1,000 tasks, each with 200 bytes of
	// name and body, needs less.
	maxBatchScratch = 512 << 10
)

// New returns a Caller. The error names the invalid field of cfg.
func New(cfg Config) (*Caller, error) {
	if cfg.Version == "" {
		cfg.Version = "dev"
	}
	if cfg.MaxConnsPerHost <= 0 {
		cfg.MaxConnsPerHost = 512
	}
	if cfg.MaxIdleConns <= 0 {
		cfg.MaxIdleConns = 4096
	}
	if cfg.Secret == nil {
		cfg.Secret = func(string, string) (string, bool) { return "", false }
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	signers, err := newSigners(cfg.Secrets)
	if err != nil {
		return nil, err
	}
	return &Caller{
		cfg:     cfg,
		agent:   "xtimer/" + cfg.Version,
		egress:  newEgress(cfg.Egress),
		signers: signers,
		tls: &tls.Config{
			RootCAs:            cfg.RootCAs,
			MinVersion:         tls.VersionTLS12,
			NextProtos:         []string{"http/1.1"},
			ClientSessionCache: tls.NewLRUClientSessionCache(1024),
		},
		scratch: sync.Pool{New: newScratch},
		batches: sync.Pool{New: newScratch},
		targets: make(map[string]*target),
	}, nil
}

// AddOwnListener forbids calls to an address on which this process listens: to its
// port, on any address of this machine.
func (c *Caller) AddOwnListener(addr netip.AddrPort) { c.egress.addOwn(addr) }

// Close closes the idle connections. Calls in flight may finish; the connection of
// such a call, and of any later call, is closed after the call.
func (c *Caller) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.sweeper != nil {
		c.sweeper.Stop()
	}
	for key, t := range c.targets {
		t.forget()
		delete(c.targets, key)
	}
}

// scratch is what one call needs for its length.
type scratch struct {
	request []byte
	body    []byte   // the default envelope
	secrets []string // the values of the headers that are secrets, in their order
	key     [48]byte
	due     [40]byte // as in JSON
	stamp   [20]byte
	ahead   [1 << 10]byte // the first of the answer
	answer  *bufio.Reader
	resp    fasthttp.Response
}

func newScratch() any { return &scratch{answer: bufio.NewReaderSize(nil, maxHead)} }

// Call makes one attempt.
func (c *Caller) Call(call *engine.Call) engine.Outcome {
	start := time.Now()
	cb := &call.Timer.Callback
	timeout := cb.Timeout
	if timeout <= 0 {
		timeout = engine.DefaultTimeout
	}

	origin, path := splitURL(cb.URL)
	t, err := c.target(origin)
	if err != nil {
		// Nothing that a repeat could mend.
		return engine.Outcome{Class: engine.ClassRejected, ErrorClass: wordProtocol, Took: time.Since(start)}
	}
	secrets, missing := c.secretsOf(call.Timer)
	if missing != "" {
		c.cfg.Log.Debug("a call was not made: a secret is missing", "task", call.Key, "secret", missing)
		return engine.Outcome{Class: engine.ClassNotSent, ErrorClass: engine.SecretMissing, Response: []byte(missing), Took: time.Since(start)}
	}
	pool, kept := &c.scratch, maxScratch
	if call.Batch != nil {
		pool, kept = &c.batches, maxBatchScratch
	}
	s := pool.Get().(*scratch)
	s.secrets = secrets
	if call.Batch != nil {
		s.request = c.appendBatch(s, call, t, path, start)
	} else {
		s.request = c.appendRequest(s, call, t, path, start)
	}
	o, err := c.attempt(t, s, call, start, start.Add(timeout))
	s.resp.Reset()
	s.answer.Reset(nil)
	s.secrets = nil
	if len(secrets) > 0 {
		o.Response = withoutSecrets(o.Response, secrets)
		if call.Batch != nil {
			hideIn(call.Batch, secrets)
		}
		clear(s.request)
	}
	if cap(s.request) > kept {
		s.request = nil
	}
	if cap(s.body) > kept {
		s.body = nil
	}
	pool.Put(s)

	if err != nil {
		o.ErrorClass = word(err)
		c.cfg.Log.Debug("a call got no response", "task", call.Key, "attempt", call.Attempt,
			"target", t.key, "class", o.ErrorClass, "err", err)
	}
	if o.Took == 0 {
		o.Took = time.Since(start)
	}
	// What is left was spent where it ended.
	p := &o.Phases
	switch rest := o.Took - p.Queue - p.Dial - p.TLS - p.Send - p.FirstByte; {
	case o.Sent.IsZero():
		p.Queue += rest
	case p.FirstByte == 0:
		p.FirstByte = rest
	default:
		p.Read = rest
	}
	return o
}

// attempt sends the request in s over a kept connection or a new one and reads
// the answer. With an error, the outcome lacks the word for it.
func (c *Caller) attempt(t *target, s *scratch, call *engine.Call, start, deadline time.Time) (engine.Outcome, error) {
	var ph engine.Phases
	idle := maxIdle
	if call.Timer.Delivery == engine.AtMostOnce {
		idle = maxIdleOnce
	}
	for kept := idle; ; kept = 0 {
		cn, err := t.acquire(start, deadline, kept, &ph)
		if err != nil {
			return engine.Outcome{Class: engine.ClassNotSent, Phases: ph}, err
		}
		waited, ok := call.Wait()
		if !ok {
			t.release(cn, waited == 0, time.Now()) // a connection that has been idle meanwhile is no fresh one
			return engine.Outcome{Class: engine.ClassNotSent, Phases: ph}, nil
		}
		start, deadline = start.Add(waited), deadline.Add(waited)
		if waited > 0 && !cn.survives(waited, idle) {
			call.Stay()
			t.release(cn, false, time.Now())
			continue
		}
		if err := cn.within(start, deadline); err != nil {
			t.release(cn, false, time.Now())
			return engine.Outcome{Class: engine.ClassNotSent, Phases: ph}, err
		}
		failpoint.Hit("connected-before-write")
		var n int
		if call.Batch != nil {
			n, err = cn.sendBatch(call, s.request, func() []byte {
				_, path := splitURL(call.Timer.Callback.URL)
				s.request = c.appendBatch(s, call, t, path, start)
				return s.request
			})
		} else {
			n, err = cn.send(call, s.request, s.ahead[:])
		}
		if err == errWithdrawn {
			t.release(cn, waited == 0, time.Now())
			return engine.Outcome{Class: engine.ClassNotSent, Phases: ph}, nil
		}
		sent := cn.sent
		ph.Queue, ph.Send = sent.Sub(start)-ph.Dial-ph.TLS, cn.written.Sub(sent)
		switch {
		case err == nil:
		case n == 0 && cn.reused && !isTimeout(err):
			// Gone while it was kept, and nothing was taken: the request is still
			// to be made.
			call.Stay()
			t.release(cn, false, time.Now())
			continue
		case n == 0:
			t.release(cn, false, time.Now())
			return engine.Outcome{Class: engine.ClassNotSent, Phases: ph}, err
		case isTimeout(err):
			t.release(cn, false, time.Now())
			return engine.Outcome{Class: engine.ClassUnknown, Sent: sent, Phases: ph}, err
		default:
			// The target hung up on the rest of a request, perhaps after it
			// said why: 413, 401.
		}
		failpoint.Hit("sent-before-response")
		o, keep, rerr := readAnswer(cn, s, call.Timer.Callback.Success, call.Batch)
		if !cn.answered.IsZero() {
			ph.FirstByte = cn.answered.Sub(cn.written)
		}
		o.Sent, o.Phases = sent, ph
		ended := time.Now()
		o.Took = ended.Sub(start)
		t.release(cn, keep && err == nil, ended)
		if rerr != nil && err != nil {
			rerr = errors.Join(err, rerr)
		}
		return o, rerr
	}
}

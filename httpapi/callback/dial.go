package callback

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"syscall"
	"time"

	"xtimer/engine"
	"xtimer/engine/failpoint"
)

// link is a connection to a target. It has one owner at a time: a call, or the
// target while it is kept.
type link struct {
	net.Conn               // what is written to and read from: TCP, or TLS over it
	socket                 // the TCP socket beneath
	direct   bool          // over TCP alone: an exchange is possible
	since    time.Time     // when it was kept
	maxIdle  time.Duration // for how long it may be
	until    time.Time     // its deadline
	reused   bool

	// Of the call.
	sent     time.Time // when its request was handed to the socket
	written  time.Time // when that had been done
	answered time.Time // when the first byte of the answer was read; zero before
	ahead    []byte    // of the answer, read by the exchange
	broken   error     // what it met when it read
}

// errWithdrawn is a call that was not to be sent any more when it could be.
var errWithdrawn = errors.New("the call was withdrawn before it was sent")

// survives reports whether a connection can be used whose call has waited for its limits: the connection has not been
// idle for too long, and is open as far as can be seen. An exchange looks by itself. A new connection over TLS may have
// tickets to be read, so there only the time tells.
func (l *link) survives(waited, idle time.Duration) bool {
	switch {
	case l.reused && time.Since(l.since) >= min(idle, l.maxIdle), waited >= idle:
		return false
	case l.reused && l.direct:
		return true
	case l.reused || l.direct:
		return l.quiet()
	}
	return waited < maxIdleOnce
}

// firstWrite is how much of a request is written while its call is at its gate: no
// more than an empty socket buffer takes, so that the write does not wait for the
// target to read.
const firstWrite = 4 << 10

// send hands the request of a call to the socket, if that is still wanted when its
// first byte can be written. Over a kept connection it also waits for the answer to
// begin, whose first bytes it reads into room.
func (l *link) send(call *engine.Call, request, room []byte) (n int, err error) {
	l.sent, l.answered, l.ahead, l.broken = time.Time{}, time.Time{}, nil, nil
	if l.reused && l.direct {
		if n, err = l.exchange(call, request, room); err != nil || n == len(request) {
			return n, err
		}
	}
	if n == 0 {
		first := min(len(request), firstWrite)
		if failpoint.Armed {
			first = min(first, len(request)/2) // a test may kill the process between the writes
		}
		if !call.Send(func() bool {
			l.sent = time.Now()
			n, err = l.Write(request[:first])
			return n > 0
		}) {
			return 0, errWithdrawn
		}
		if l.written = time.Now(); err != nil || n == len(request) {
			return n, err
		}
		failpoint.Hit("mid-write")
	}
	m, err := l.Write(request[n:])
	l.written = time.Now()
	return n + m, err
}

// Read gives what the exchange read first, and notes when the answer begins.
func (l *link) Read(b []byte) (n int, err error) {
	switch {
	case len(l.ahead) > 0:
		n = copy(b, l.ahead)
		l.ahead = l.ahead[n:]
		return n, nil
	case l.broken != nil:
		return 0, l.broken
	}
	n, err = l.Conn.Read(b)
	if n > 0 && l.answered.IsZero() {
		l.answered = time.Now()
	}
	return n, err
}

// deadlineSlack is how much later than asked a call may be cut off, and no later than
// by a hundredth of its timeout. With it a busy connection gets a new deadline 20 times
// a second (or 100 times in the timeout) instead of with every call, which was a
// fiftieth of a call.
const deadlineSlack = 50 * time.Millisecond

// within bounds what is done next on the connection: at the deadline of a call that
// started at start, or up to deadlineSlack later.
func (l *link) within(start, deadline time.Time) error {
	slack := min(deadline.Sub(start)/100, deadlineSlack)
	if late := l.until.Sub(deadline); late >= 0 && late <= slack {
		return nil
	}
	l.until = deadline.Add(slack)
	return l.SetDeadline(l.until)
}

// dial makes a connection within the deadline: name, egress check of each
// address dialled, TCP, TLS. It adds to ph what that took.
func (t *target) dial(deadline time.Time, ph *engine.Phases) (*link, error) {
	start := time.Now()
	d := net.Dialer{
		Deadline:  deadline,
		Resolver:  t.c.cfg.Resolver,
		KeepAlive: -1, // a call has its timeout, and a kept connection 4 s
		Control: func(_, address string, _ syscall.RawConn) error {
			return t.c.egress.check(address)
		},
	}
	tcp, err := d.DialContext(context.Background(), "tcp", t.addr)
	dialled := time.Now()
	ph.Dial += dialled.Sub(start)
	if err != nil {
		return nil, &stageError{wordRefused, err}
	}
	cn := &link{Conn: tcp, maxIdle: maxIdle, direct: exchanges && !t.secure && !failpoint.Armed}
	if err := cn.open(tcp); err != nil {
		tcp.Close()
		return nil, &stageError{wordRefused, err}
	}
	if !t.secure {
		return cn, nil
	}
	cfg := t.c.tls.Clone()
	cfg.ServerName = t.host
	secured := tls.Client(tcp, cfg)
	if err = secured.SetDeadline(deadline); err == nil {
		err = secured.Handshake()
	}
	ph.TLS += time.Since(dialled)
	if err != nil {
		tcp.Close()
		return nil, &stageError{wordTLS, err}
	}
	cn.Conn = secured
	return cn, nil
}

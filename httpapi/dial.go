package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"syscall"
	"time"

	"xtimer/engine"
)

// link is a connection to a target. It has one owner at a time: a call, or the
// target while it is kept.
type link struct {
	net.Conn           // what is written to and read from: TCP, or TLS over it
	peek     peek      // at the TCP socket
	since    time.Time // when it was kept
	until    time.Time // its deadline
	answered time.Time // when the first byte of the answer was read; zero before
	reused   bool
}

// Read notes when the answer begins.
func (l *link) Read(b []byte) (n int, err error) {
	n, err = l.Conn.Read(b)
	if n > 0 && l.answered.IsZero() {
		l.answered = time.Now()
	}
	return n, err
}

// deadlineSlack is how much later than asked a call may be cut off. With it a
// busy connection gets a new deadline 20 times a second instead of with every
// call, which was a fiftieth of a call.
const deadlineSlack = 50 * time.Millisecond

// within bounds what is done next on the connection: at the deadline, or up to
// deadlineSlack later.
func (l *link) within(deadline time.Time) error {
	if late := l.until.Sub(deadline); late >= 0 && late <= deadlineSlack {
		return nil
	}
	l.until = deadline.Add(deadlineSlack)
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
	cn := &link{Conn: tcp}
	if err := cn.peek.open(tcp); err != nil {
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

// quiet tells that a kept connection is open and has nothing to say. A target
// that hung up, or that speaks without being asked (an answer of 408, a TLS
// alert), will not answer another request.
func (c *link) quiet() bool { return c.peek.quiet() }

package callback

import (
	"cmp"
	"errors"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"xtimer/engine"
)

// exchanges tells that a link can exchange.
const exchanges = true

// socket is the TCP socket of a link, for what Go's net does not do: to look at
// it without taking anything, and to exchange.
type socket struct {
	raw syscall.RawConn
	// Made once: a closure a call would be garbage.
	look func(fd uintptr)
	step func(fd uintptr) (done bool)

	isQuiet bool
	// Of the exchange under way.
	call          *engine.Call
	request, room []byte
	wrote         int
	err           error
}

func (l *link) open(tcp net.Conn) (err error) {
	l.raw, err = tcp.(*net.TCPConn).SyscallConn()
	l.look = func(fd uintptr) { l.isQuiet = isQuiet(fd) }
	l.step = l.proceed
	return err
}

// quiet tells that a kept connection is open and has nothing to say. A target
// that hung up, or that speaks without being asked (an answer of 408, a TLS
// alert), will not answer another request.
func (l *link) quiet() bool {
	l.isQuiet = false
	return l.raw.Control(l.look) == nil && l.isQuiet
}

// isQuiet looks: 0 bytes would be the end of the connection, a byte something
// unasked, another error its failure.
func isQuiet(fd uintptr) bool {
	var b [1]byte
	// Raw, for it never blocks: the scheduler need not know.
	_, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b)), 1,
		unix.MSG_PEEK|unix.MSG_DONTWAIT, 0, 0)
	return errno == unix.EAGAIN
}

var errNotQuiet = errors.New("the target closed the connection, or sent data without a request")

// exchange looks at a kept connection, writes a request and reads the first of the
// answer into room, all within one of net's reads:
//
//	look → gate → write → wait → read
//
// That is three system calls, as many as fasthttp's client makes, which does not
// look. With net's Write and Read they would be four, half a microsecond each: Read
// asks the socket before it waits, and right behind a request there is no answer
// yet. The look lies within because Go forgets what it heard of a socket when a
// read begins; what the target does after that ends the wait.
//
// It returns when the answer has begun, when it is known that it never will, at
// the deadline, and when not all could be written at once: the rest is for Write.
func (l *link) exchange(call *engine.Call, request, room []byte) (n int, err error) {
	l.call, l.request, l.room, l.wrote, l.err = call, request, room, 0, nil
	waited := l.raw.Read(l.step)
	l.call, l.request, l.room = nil, nil, nil
	if l.sent.IsZero() { // not quiet, withdrawn, or the deadline had passed before
		l.sent = time.Now()
		l.written = l.sent
		return 0, cmp.Or(l.err, waited)
	}
	return l.wrote, l.err
}

// proceed is called once to write, and again when there may be something to read.
func (l *link) proceed(fd uintptr) (done bool) {
	if l.wrote == 0 {
		if !isQuiet(fd) {
			l.err = errNotQuiet
			return true
		}
		if !l.call.Send(func() bool {
			l.sent = time.Now()
			n, err := uninterrupted("write", syscall.Write, fd, l.request)
			l.wrote, l.err = max(n, 0), err
			return n > 0
		}) {
			l.err = errWithdrawn
			return true
		}
		l.written = time.Now()
		return l.wrote < len(l.request)
	}
	n, err := uninterrupted("read", syscall.Read, fd, l.room)
	if err == nil && n < 0 {
		return false
	}
	if n > 0 {
		l.ahead, l.answered = l.room[:n], time.Now()
	}
	l.broken = err // the end of the connection Read will find as well
	return true
}

// uninterrupted makes a system call that does not wait; -1: it would have to.
func uninterrupted(name string, call func(int, []byte) (int, error), fd uintptr, b []byte) (int, error) {
	for {
		switch n, err := call(int(fd), b); err {
		case nil:
			return n, nil
		case syscall.EINTR:
		case syscall.EAGAIN:
			return -1, nil
		default:
			return 0, &net.OpError{Op: name, Net: "tcp", Err: os.NewSyscallError(name, err)}
		}
	}
}

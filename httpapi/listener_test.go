package httpapi

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

type (
	netipAddr = netip.Addr
	counter   = metrics.Counter
)

func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// fakeListener fails as often as it is told, then gives a connection.
type fakeListener struct {
	errs  []error
	calls []time.Time
}

func (l *fakeListener) Accept() (net.Conn, error) {
	l.calls = append(l.calls, time.Now())
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", err)}
	}
	c, _ := net.Pipe()
	return c, nil
}
func (l *fakeListener) Close() error   { return nil }
func (l *fakeListener) Addr() net.Addr { return &net.TCPAddr{} }

// addressed is a connection from somewhere.
type addressed struct {
	net.Conn
	ip string
}

func (a addressed) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(a.ip), Port: 7} }

func TestAcceptOutlivesMissingDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &fakeListener{errs: []error{
			syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED,
			syscall.EMFILE, syscall.EMFILE, syscall.EMFILE, syscall.EMFILE, syscall.EMFILE,
		}}
		warned := 0
		l := &listener{
			Listener: in, closed: make(chan struct{}), from: map[netip.Addr]int{}, perIP: 9, total: 9,
			failures: &counter{}, refused: &counter{}, warn: func(error) { warned++ },
		}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if warned != 1 || l.failures.Get() != 10 {
			t.Errorf("warned %d times of %d errors", warned, l.failures.Get())
		}
		for i, want := 0, 5*time.Millisecond; i < 10; i, want = i+1, min(2*want, 500*time.Millisecond) {
			if got := in.calls[i+1].Sub(in.calls[i]); got != want {
				t.Errorf("wait %d took %v, want %v", i, got, want)
			}
		}
		in.errs = []error{syscall.EINVAL}
		if _, err := l.Accept(); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%v is taken for one that passes", err)
		}
		in.errs = []error{syscall.EMFILE, syscall.EMFILE, syscall.EMFILE}
		go func() { time.Sleep(7 * time.Millisecond); l.Close() }()
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

// TestReserveAnswersOne runs out of descriptors for real.
func TestReserveAnswersOne(t *testing.T) {
	if testing.Short() {
		t.Skip("it lowers the process's limit of descriptors for a moment")
	}
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	refused := make(chan struct{})
	l := &listener{
		Listener: &once{Listener: in, err: syscall.EMFILE}, closed: make(chan struct{}), from: map[netip.Addr]int{}, perIP: 9, total: 9,
		failures: &counter{}, refused: &counter{}, warn: func(error) { close(refused) },
	}
	l.reserve, _ = os.Open(os.DevNull)
	go l.Accept()
	c, err := net.Dial("tcp", in.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	<-refused
	b, _ := io.ReadAll(c)
	if want := "HTTP/1.1 503 "; len(b) < len(want) || string(b[:len(want)]) != want {
		t.Errorf("answer %q", b)
	}
	c.Close()
}

// once fails once, when a client is waiting.
type once struct {
	net.Listener
	err error
}

func (l *once) SetDeadline(t time.Time) error {
	return l.Listener.(*net.TCPListener).SetDeadline(t)
}

func (l *once) Accept() (net.Conn, error) {
	if err := l.err; err != nil {
		l.err = nil
		raw, _ := l.Listener.(*net.TCPListener).SyscallConn()
		raw.Read(func(uintptr) bool { return true })
		time.Sleep(20 * time.Millisecond)
		return nil, err
	}
	return l.Listener.Accept()
}

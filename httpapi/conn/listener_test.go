package conn

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

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
		l := Listen(in, Limits{
			PerIP: 9, Total: 9, Failures: &metrics.Counter{}, Refused: &metrics.Counter{}, Warn: func(error) { warned++ },
		})
		defer l.Free()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if warned != 1 || l.limits.Failures.Get() != 10 {
			t.Errorf("warned %d times of %d errors", warned, l.limits.Failures.Get())
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
	l := Listen(&once{Listener: in, err: syscall.EMFILE}, Limits{
		PerIP: 9, Total: 9, Failures: &metrics.Counter{}, Refused: &metrics.Counter{}, Warn: func(error) { close(refused) },
	})
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

func TestConnectionsArePerAddress(t *testing.T) {
	l := Listen(&fakeListener{}, Limits{PerIP: 2, Total: 3, Failures: &metrics.Counter{}, Refused: &metrics.Counter{}})
	defer l.Free()
	var open []net.Conn
	status := func(ip string) string {
		ours, theirs := net.Pipe()
		answer := make(chan string, 1)
		go func() {
			b, _ := io.ReadAll(ours)
			answer <- string(b)
		}()
		if c := l.admit(addressed{theirs, ip}); c != nil {
			open = append(open, c)
			ours.Close()
			<-answer
			return "taken"
		}
		first, _, _ := strings.Cut(<-answer, "\r\n")
		return first
	}
	for _, c := range []struct{ ip, want string }{
		{"10.0.0.1", "taken"},
		{"::ffff:10.0.0.1", "taken"},
		{"10.0.0.1", "HTTP/1.1 429 Too Many Requests"},
		{"10.0.0.2", "taken"},
		{"10.0.0.3", "HTTP/1.1 503 Service Unavailable"},
	} {
		if got := status(c.ip); got != c.want {
			t.Errorf("%s: %s, want %s", c.ip, got, c.want)
		}
	}
	for _, c := range open {
		c.Close()
		c.Close() // counts once
	}
	if l.open.Load() != 0 || len(l.from) != 0 {
		t.Errorf("%d open, %v", l.open.Load(), l.from)
	}
	if got := status("10.0.0.1"); got != "taken" {
		t.Error(got)
	}
}

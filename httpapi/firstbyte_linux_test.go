package httpapi

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"xtimer/engine"
	"xtimer/engine/change"
	"xtimer/engine/scheduler"
	"xtimer/httpapi/callback"
)

// arrivals are the first bytes of requests by their path, as the kernel saw them
// come: when a busy receiver reads them says nothing.
type arrivals struct {
	mu sync.Mutex
	at map[string][]time.Time
}

func (a *arrivals) of(path string) []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at[path]
}

// take answers the requests of a connection, one packet each; the first only, unless
// keep says so.
func (a *arrivals) take(c net.Conn, keep bool) {
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		panic(err)
	}
	for {
		var n, extra int
		packet, stamp := make([]byte, 8<<10), make([]byte, 128)
		if rerr := raw.Read(func(fd uintptr) bool {
			n, extra, _, _, err = syscall.Recvmsg(int(fd), packet, stamp, 0)
			return err != syscall.EAGAIN
		}); rerr != nil || err != nil || n <= 0 {
			return
		}
		at := time.Now()
		messages, _ := syscall.ParseSocketControlMessage(stamp[:extra])
		for _, m := range messages {
			at = time.Unix((*unix.Timespec)(unsafe.Pointer(&m.Data[0])).Unix())
		}
		path := string(bytes.Fields(packet[:n])[1])
		a.mu.Lock()
		a.at[path] = append(a.at[path], at)
		a.mu.Unlock()
		answer := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
		if !keep {
			answer = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
		}
		if _, err := io.WriteString(c, answer); err != nil || !keep {
			return
		}
	}
}

// stamped is a listener whose connections have stamps, with that much room for those
// that are not accepted.
func stamped(t *testing.T, room int) net.Listener {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	must(t, err)
	must(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1))
	must(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, unix.Listen(fd, room))
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close()
	ln, err := net.FileListener(f)
	must(t, err)
	return ln
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (a *arrivals) serve(ln net.Listener, keep bool) {
	for {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		go a.take(c, keep)
	}
}

// slowNames is a resolver that finds every name at 127.0.0.1, in its own time.
func slowNames(most time.Duration) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			var size [2]byte
			if _, err := io.ReadFull(theirs, size[:]); err != nil {
				return
			}
			question := make([]byte, binary.BigEndian.Uint16(size[:]))
			if _, err := io.ReadFull(theirs, question); err != nil {
				return
			}
			time.Sleep(rand.N(most))
			name := bytes.IndexByte(question[12:], 0) + 12 + 1
			m := append([]byte(nil), question[:name+4]...)
			copy(m[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0})
			if question[name+1] == 1 { // A
				m[7] = 1
				m = append(m, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
			}
			theirs.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...))
		}()
		return ours, nil
	}}
}

// slowDisk is a journal whose syncs that somebody waits for take their time.
type slowDisk struct {
	engine.Journal
	most time.Duration
}

func (d slowDisk) Sync(ctx context.Context, p engine.Position) error {
	time.Sleep(rand.N(d.most))
	return d.Journal.Sync(ctx, p)
}

// way is one that a call goes to its first byte, and how long that may take.
type way struct {
	name string
	took time.Duration
	url  func(t *testing.T, a *arrivals, due time.Time) string // of a target with nothing behind the host
	once bool
}

// lastWords are changes after whose answer no call is made of what stood before.
var lastWords = []struct {
	name string
	make func(ctx context.Context, e *scheduler.Scheduler, id engine.TimerID) (change.DeleteResult, error)
}{
	{"delete", func(ctx context.Context, e *scheduler.Scheduler, id engine.TimerID) (change.DeleteResult, error) {
		return e.Delete(ctx, id, 0)
	}},
	{"disable", func(ctx context.Context, e *scheduler.Scheduler, id engine.TimerID) (change.DeleteResult, error) {
		_, err := e.Disable(ctx, id, 0, "", 0)
		return "", err
	}},
	{"another schedule", func(ctx context.Context, e *scheduler.Scheduler, id engine.TimerID) (change.DeleteResult, error) {
		_, err := e.Replace(ctx, id, 0, func(d engine.Definition) (engine.Definition, error) {
			d.Schedule = engine.Schedule{Every: time.Hour}
			return d, nil
		})
		return "", err
	}},
	{"a put", func(ctx context.Context, e *scheduler.Scheduler, id engine.TimerID) (change.DeleteResult, error) {
		v, err := e.Timer(ctx, id)
		if err == nil {
			d := v.Timer.Definition
			d.Schedule = engine.Schedule{Every: time.Hour}
			_, _, err = e.Put(ctx, d, 0)
		}
		return "", err
	}},
	{"another URL", func(ctx context.Context, e *scheduler.Scheduler, id engine.TimerID) (change.DeleteResult, error) {
		_, err := e.Replace(ctx, id, 0, func(d engine.Definition) (engine.Definition, error) {
			d.Callback.URL += "/changed"
			return d, nil
		})
		return "", err
	}},
}

// TestNoFirstByteAfterAChange races changes against calls that are slow to begin: no
// first byte leaves after the answer to a change, and one has left when a delete says
// that a call is in flight. XTIMER_CANCELS=20000 makes as many.
func TestNoFirstByteAfterAChange(t *testing.T) {
	n := 300
	if s := os.Getenv("XTIMER_CANCELS"); s != "" {
		var err error
		n, err = strconv.Atoi(s)
		must(t, err)
	}
	const slow, workers = 30 * time.Millisecond, 32
	a := &arrivals{at: map[string][]time.Time{}}
	kept, closing := stamped(t, 4096), stamped(t, 4096)
	defer kept.Close()
	defer closing.Close()
	go a.serve(kept, true)
	go a.serve(closing, false)
	time.Sleep(100 * time.Millisecond) // the kernel begins to stamp a little after it was told to
	_, port, _ := net.SplitHostPort(closing.Addr().String())

	ways := []way{
		{"a kept connection", time.Millisecond, func(*testing.T, *arrivals, time.Time) string { return "http://" + kept.Addr().String() }, false},
		{"a slow name", slow, func(*testing.T, *arrivals, time.Time) string { return "http://slow.test.:" + port }, false},
		{"a slow disk", slow, func(*testing.T, *arrivals, time.Time) string { return "http://" + kept.Addr().String() }, true},
		{"a full queue", 1200 * time.Millisecond, func(t *testing.T, a *arrivals, due time.Time) string {
			ln := stamped(t, 0)
			full, err := net.Dial("tcp", ln.Addr().String())
			must(t, err)
			time.AfterFunc(time.Until(due.Add(500*time.Millisecond)), func() { // the second SYN comes after 1 s
				full.Close()
				go a.serve(ln, false)
			})
			time.AfterFunc(time.Until(due.Add(10*time.Second)), func() { ln.Close() })
			return "http://" + ln.Addr().String()
		}, false},
	}
	cb, err := callback.New(callback.Config{Resolver: slowNames(slow)})
	must(t, err)
	t.Cleanup(cb.Close)
	e := racedEngine(t, cb, slow)

	type race struct {
		way, word  string
		path       string
		result     change.DeleteResult
		answeredAt time.Time
	}
	var mu sync.Mutex
	var races []race
	var next int
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= n {
					return
				}
				w, word := ways[i%len(ways)], lastWords[i/len(ways)%len(lastWords)]
				r := race{way: w.name, word: word.name, path: fmt.Sprintf("/%d", i)}
				due := time.Now().Add(40 * time.Millisecond)
				d := engine.NewDefinition()
				d.App, d.Name, d.Schedule = "app", r.path[1:], engine.Schedule{At: due.UnixMilli()}
				d.Callback.URL = w.url(t, a, due) + r.path
				if w.once {
					d.Delivery = engine.AtMostOnce
				}
				made := e.Create(t.Context(), d, nil)
				if made.Err != nil {
					t.Error(made.Err)
					return
				}
				time.Sleep(time.Until(due.Add(rand.N(w.took))))
				var err error
				r.result, err = word.make(t.Context(), e, made.View.ID)
				r.answeredAt = time.Now()
				if err != nil {
					t.Errorf("%s: %v", word.name, err)
					return
				}
				mu.Lock()
				races = append(races, r)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	time.Sleep(1500 * time.Millisecond) // what was under way comes
	before := map[string]int{}
	for _, r := range races {
		sent := a.of(r.path)
		if len(sent) > 0 {
			before[r.way]++
		}
		for _, at := range sent {
			if late := at.Sub(r.answeredAt); late > 0 {
				t.Errorf("%s, %s: a first byte left %v after the answer %q", r.way, r.word, late, r.result)
			}
		}
		if r.result == change.DeleteInFlight && len(sent) == 0 {
			t.Errorf("%s: a delete says that a call is in flight, and no byte was sent", r.way)
		}
	}
	t.Logf("%d changes; sent before: %v", len(races), before)
	if len(races) < n || n >= 300 && len(before) < len(ways) {
		t.Errorf("only %d races of %d were run, with calls before the change: %v", len(races), n, before)
	}
}

// racedEngine fires by c, over a slow disk.
func racedEngine(t *testing.T, c engine.Caller, slow time.Duration) *scheduler.Scheduler {
	t.Helper()
	e, open := builtEngineOn(t, c.Call, nil, func(cfg *scheduler.Config) {
		cfg.Journal = slowDisk{cfg.Journal, slow}
	})
	open()
	return e
}

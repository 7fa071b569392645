package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// hostile is a kind of receiver that does harm to who calls it. Each has the
// connection to itself, and what was read of the request.
var hostile = []struct {
	name, scheme string
	answer       func(c net.Conn, say func(string) bool)
}{
	{"claims 10 GiB", "http", func(_ net.Conn, say func(string) bool) {
		for ok := say("HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n"); ok; ok = say(strings.Repeat("x", 4096)) {
		}
	}},
	{"endless chunks", "http", func(_ net.Conn, say func(string) bool) {
		for ok := say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"); ok; ok = say("1000\r\n" + strings.Repeat("x", 4096) + "\r\n") {
		}
	}},
	{"a byte a second", "http", func(_ net.Conn, say func(string) bool) {
		for ok := say("HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n"); ok; ok = say(".") {
			time.Sleep(time.Second)
		}
	}},
	{"garbage", "http", func(_ net.Conn, say func(string) bool) {
		for say("\x00\x01\xff 220 smtp.example ESMTP\r\n") {
		}
	}},
	{"early hints for ever", "http", func(_ net.Conn, say func(string) bool) {
		for say("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n") {
		}
	}},
	{"mute TLS", "https", func(c net.Conn, _ func(string) bool) { io.Copy(io.Discard, c) }},
	{"hangs up", "http", func(net.Conn, func(string) bool) {}},
	{"sends elsewhere", "http", func(c net.Conn, say func(string) bool) {
		say("HTTP/1.1 307 Go\r\nLocation: http://" + c.LocalAddr().String() + "/again\r\nContent-Length: 0\r\n\r\n")
	}},
}

// hostileApps are the apps whose timers call them.
const hostileApps = 8

const hostileEnv = "XTIMER_HOSTILE_RECEIVERS"

// runHostile is the child: it starts so many receivers, of each kind as many, and prints
// their URLs; when its input ends, how often each kind was called. They have a process
// of their own, for thousands of goroutines that write without end leave little of one to
// a receiver that answers: beside other load each wait for its lock took a turn of all of
// them, so that calls to it timed out, and were made again.
func runHostile() error {
	n, err := strconv.Atoi(os.Getenv(hostileEnv))
	if err != nil {
		return err
	}
	called := make([]atomic.Int64, len(hostile))
	var urls []string
	for i := range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		kind := i % len(hostile)
		urls = append(urls, hostile[kind].scheme+"://"+ln.Addr().String()+"/call")
		go serveHostile(ln, kind, &called[kind])
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(urls); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	counts := make([]int64, len(called))
	for i := range called {
		counts[i] = called[i].Load()
	}
	return out.Encode(counts)
}

func serveHostile(ln net.Listener, kind int, called *atomic.Int64) {
	for {
		c, err := ln.Accept()
		if err != nil {
			fmt.Fprintln(os.Stderr, "a hostile receiver has ended:", err)
			return
		}
		called.Add(1)
		go func() {
			defer c.Close()
			c.Read(make([]byte, 4096))
			hostile[kind].answer(c, func(text string) bool {
				_, err := io.WriteString(c, text)
				return err == nil
			})
		}()
	}
}

// startHostile starts n receivers and tells their URLs; end ends them, and tells how often
// each kind was called.
func startHostile(t *testing.T, n int) (urls []string, end func() []int64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), hostileEnv+"="+strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	lines := json.NewDecoder(out)
	read := func(v any) {
		if err := lines.Decode(v); err != nil {
			t.Fatal("the hostile receivers: ", err)
		}
	}
	read(&urls)
	return urls, func() (called []int64) {
		in.Close()
		read(&called)
		return called
	}
}

// TestThousandHostileReceivers calls 1,000 receivers of all hostile kinds at once,
// each every 3 s, beside an app of good ones: nothing of that is missing or
// twice, it is called on time, and the memory stays what it was.
func TestThousandHostileReceivers(t *testing.T) {
	length := time.Duration(setting("XTIMER_HOSTILE", 8)) * time.Second
	// Where other processes keep the machine busy, the good receiver may take longer to
	// answer than calls wait by default.
	tr := &trial{t: t, rate: setting("XTIMER_RATE", 200), intervals: 20, timeout: 2 * time.Minute}
	tr.begin()
	tr.busy()
	urls, end := startHostile(t, 1000)
	rss := tr.p.rss()
	for len(urls) > 0 {
		part := urls[:min(500, len(urls))]
		urls = urls[len(part):]
		var lines bytes.Buffer
		for _, u := range part {
			name := names.Add(1)
			fmt.Fprintf(&lines, `{"app":"hostile-%d","name":"h-%d","schedule":{"every":"3s","jitter":"2999ms"},"callback":{"url":%q,"timeout":"2s"}}`+"\n", name%hostileApps, name, u)
		}
		if _, err := createBatch(tr.p.url(""), lines.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	tr.r.mu.Lock()
	tr.r.late = nil
	tr.r.mu.Unlock()
	most, inFlight, own := rss, 0.0, startPulse()
	for until := time.Now().Add(length); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		most = max(most, tr.p.rss())
		if n, err := tr.p.askMetric("xtimer_calls_in_flight"); err == nil { // else the machine is too busy to tell
			inFlight = max(inFlight, n)
		}
	}
	late, machine := tr.r.lateness(.5, .99), own.end()
	// Where the machine cannot bear all of it, what waits would only grow.
	for i := range hostileApps {
		tr.p.deleteAll(fmt.Sprintf("hostile-%d", i))
	}
	tr.finish()
	tr.check(false)
	for i, n := range end() {
		if n < 125 {
			t.Errorf("%s: only %d calls", hostile[i].name, n)
		}
	}
	t.Logf("beside them: late by %v, at p99 %v; resident %d MiB before, %d at most; %.0f calls in flight at most", late[0], late[1], rss>>20, most>>20, inFlight)
	// One that waits for the place of a hostile call waits for its timeout, 2 s.
	onTime(t, "the median of the good app", late[0], 500*time.Millisecond, machine)
	onTime(t, "the good app", late[1], 2*time.Second, machine)
	// A call may take 64 KiB for what is answered, 16 to read it, and a stack with what
	// TLS needs, all of it twice, for the collector lets as much gather.
	if bound := rss + 96<<20 + int64(inFlight)*192<<10; most > bound {
		t.Errorf("they cost memory: %d MiB are asked", bound>>20)
	}
}

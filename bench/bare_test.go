package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// The bare loop is what the machine allows: a fasthttp client in a process of
// its own that sends the same request, headers and body, to the same receiver,
// over and over on so many connections. A ratio to it means something on any
// machine; calls a second do not.

// bareRequest is one of xtimer's requests as it arrived, for the loop to repeat.
type bareRequest struct {
	URL     string
	Headers map[string]string
	Body    []byte
}

const bareSeconds = 3

const bareEnv = "XTIMER_BARE_LOOP"

// runBareLoop is the child: it reads the request, loops for some seconds on so
// many connections, and prints the calls a second.
func runBareLoop() error {
	conns, err := strconv.Atoi(os.Getenv(bareEnv))
	if err != nil {
		return err
	}
	var b bareRequest
	if err := json.NewDecoder(os.Stdin).Decode(&b); err != nil {
		return err
	}
	var u fasthttp.URI
	if err := u.Parse(nil, []byte(b.URL)); err != nil {
		return err
	}
	c := &fasthttp.HostClient{Addr: string(u.Host()), MaxConns: conns, MaxIdemponentCallAttempts: 1}
	var calls, failed atomic.Int64
	started := time.Now()
	end := started.Add(bareSeconds * time.Second)
	var wg sync.WaitGroup
	for range conns {
		wg.Go(func() {
			req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			for time.Now().Before(end) {
				req.Reset()
				req.SetRequestURI(b.URL)
				req.Header.SetMethod("POST")
				for k, v := range b.Headers {
					req.Header.Set(k, v)
				}
				req.SetBodyRaw(b.Body)
				if err := c.DoTimeout(req, resp, 15*time.Second); err != nil {
					failed.Add(1)
				}
				calls.Add(1)
			}
		})
	}
	wg.Wait()
	if n := failed.Load(); n > 0 {
		return fmt.Errorf("%d calls failed", n)
	}
	fmt.Println(float64(calls.Load()) / time.Since(started).Seconds())
	return nil
}

// bare is the bare loop in several passes, before and after what it is compared
// with: the machine is not the same from one ten seconds to the next. It counts
// with the number of connections that is best over all passes; the best of each
// would be its luckiest moment.
type bare struct {
	conns  [3]int
	passes []barePass
}

type barePass struct {
	rate [3]float64 // by number of connections
	cpu  [3]time.Duration
}

func newBare() *bare { return &bare{conns: [3]int{16, 48, 128}} }

// pass loops over the request with each number of connections.
func (l *bare) pass(t testing.TB, b bareRequest) {
	t.Helper()
	in, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var p barePass
	for i, conns := range l.conns {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), bareEnv+"="+strconv.Itoa(conns))
		cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal("the bare loop: ", err)
		}
		rate, err := strconv.ParseFloat(string(bytes.TrimSpace(out)), 64)
		if err != nil {
			t.Fatal(err)
		}
		s := cmd.ProcessState
		p.rate[i] = rate
		p.cpu[i] = time.Duration(float64(s.UserTime()+s.SystemTime()) / (rate * bareSeconds))
	}
	l.passes = append(l.passes, p)
}

// best is its calls a second in passes of all of them, and the processor time that
// a call took it.
func (l *bare) best(passes ...barePass) (rate float64, cpu time.Duration) {
	var sum [3]float64
	for _, p := range l.passes {
		for i := range sum {
			sum[i] += p.rate[i]
		}
	}
	best := slices.Index(sum[:], slices.Max(sum[:]))
	for _, p := range passes {
		rate += p.rate[best] / float64(len(passes))
		cpu += p.cpu[best] / time.Duration(len(passes))
	}
	return rate, cpu
}

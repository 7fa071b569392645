package bench

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// batchReceiver takes batches, and counts their tasks.
type batchReceiver struct {
	url string

	mu           sync.Mutex // guards all below
	tasks, calls int
	early        int
	late         []uint32 // tasks by how late they were, in steps of lateStep
	last         time.Time
}

// Lateness is counted, not kept: at 2,600,000 tasks a slice of it grew for 182 ms, in one append,
// under the lock that all calls wait for.
const (
	lateStep  = 100 * time.Microsecond
	lateSteps = int(2 * time.Minute / lateStep)
)

func startBatchReceiver(b *testing.B) *batchReceiver {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	r := &batchReceiver{url: "http://" + ln.Addr().String() + "/batch", late: make([]uint32, lateSteps)}
	srv := &fasthttp.Server{Handler: r.take, NoDefaultDate: true, NoDefaultServerHeader: true}
	go srv.Serve(ln)
	b.Cleanup(func() { srv.Shutdown() })
	return r
}

// take reads the dues of a batch from the keys of its tasks.
func (r *batchReceiver) take(c *fasthttp.RequestCtx) {
	now, mark, n := time.Now(), []byte(`{"task":"`), 0
	r.mu.Lock()
	defer r.mu.Unlock()
	for rest := c.PostBody(); ; n++ {
		i := bytes.Index(rest, mark)
		if i < 0 {
			break
		}
		rest = rest[i+len(mark):]
		key := rest[:bytes.IndexByte(rest, '"')]
		due, _ := strconv.ParseInt(string(key[bytes.IndexByte(key, '_')+1:]), 10, 64)
		late := now.Sub(time.UnixMilli(due))
		if late < 0 {
			r.early++
		}
		r.late[min(max(int(late/lateStep), 0), lateSteps-1)]++
	}
	if said, _ := strconv.Atoi(string(c.Request.Header.Peek("X-Xtimer-Tasks"))); said != n {
		c.SetStatusCode(400)
		return
	}
	r.tasks += n
	r.calls++
	r.last = now
}

func (r *batchReceiver) counted() (tasks, calls int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tasks, r.calls
}

func (r *batchReceiver) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tasks, r.calls, r.early = 0, 0, 0
	clear(r.late)
}

// report tells the lateness, and what came early.
func (r *batchReceiver) report(b *testing.B) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, q := range map[string]float64{"lateness-p50-ms": .5, "lateness-p99-ms": .99} {
		at, seen := 0, int(r.late[0])
		for float64(seen) < q*float64(r.tasks) {
			at++
			seen += int(r.late[at])
		}
		b.ReportMetric(ms(time.Duration(at+1)*lateStep), name)
	}
	b.ReportMetric(float64(r.early), "early")
}

// BenchmarkBatches is the most tasks a second where a call carries many: a number that is due
// every second, and a million at one ms.
func BenchmarkBatches(b *testing.B) {
	for _, rate := range []int{100_000, 150_000} {
		b.Run(fmt.Sprintf("%d-a-second", rate), func(b *testing.B) { benchBatchRate(b, rate) })
	}
	b.Run("1000000-at-one-ms", benchBatchMillion)
}

// benchBatchRate keeps timers due every 10 ms, and counts the tasks that arrive in so many seconds.
func benchBatchRate(b *testing.B, rate int) {
	p, r := startProcess(b), startBatchReceiver(b)
	for made, n := 0, rate/100; made < n; {
		var lines bytes.Buffer
		for range min(500, n-made) {
			made++
			fmt.Fprintf(&lines, `{"app":"bench","name":"every-%d","schedule":{"every":"10ms"},"callback":{"url":%q,"batch":{"max":500}}}`+"\n", made, r.url)
		}
		if _, err := createBatch(p.url(""), lines.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
	time.Sleep(3 * time.Second)
	r.reset()
	from, used, spent := time.Now(), p.cpu(), time.Duration(0)
	time.Sleep(time.Duration(setting("XTIMER_SECONDS", 10)) * time.Second)
	tasks, calls := r.counted()
	took := time.Since(from)
	spent = p.cpu() - used
	b.ReportMetric(float64(tasks)/took.Seconds(), "tasks/s")
	b.ReportMetric(float64(tasks)/float64(calls), "tasks/call")
	b.ReportMetric(float64(spent.Nanoseconds())/1000/float64(tasks), "cpu-us/task")
	r.report(b)
	p.kill()
}

// benchBatchMillion has a million timers due at one instant.
func benchBatchMillion(b *testing.B) {
	p, r := startProcess(b), startBatchReceiver(b)
	n := setting("XTIMER_TIMERS", 1_000_000)
	due := time.Now().Add(5*time.Second + time.Duration(n)*time.Duration(setting("XTIMER_LEAD_US", 60))*time.Microsecond)
	for made := 0; made < n; {
		var lines bytes.Buffer
		for range min(1000, n-made) {
			made++
			fmt.Fprintf(&lines, `{"app":"bench","name":"shot-%d","schedule":{"at":%d},"callback":{"url":%q,"batch":{"max":1000},"body":{"order":%d}}}`+"\n", made, due.UnixMilli(), r.url, made)
		}
		if _, err := createBatch(p.url(""), lines.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
	if time.Now().After(due) {
		b.Fatal("creating took longer than the lead: the figure would be wrong")
	}
	time.Sleep(time.Until(due))
	for tasks := 0; tasks < n; tasks, _ = r.counted() {
		time.Sleep(10 * time.Millisecond)
		if time.Since(due) > 2*time.Minute {
			b.Fatalf("%d of %d tasks arrived", tasks, n)
		}
	}
	_, calls := r.counted()
	b.ReportMetric(r.last.Sub(due).Seconds(), "s-to-the-last")
	b.ReportMetric(float64(n)/r.last.Sub(due).Seconds(), "tasks/s")
	b.ReportMetric(float64(n)/float64(calls), "tasks/call")
	r.report(b)
	p.kill()
}

package bench

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// The whole path: created over HTTP, fired, called, settled, by the real binary
// in a process of its own; the receiver and the load in this one.

// schedule creates n one-shots, the i-th due at due(i), in batches of 1,000.
func schedule(b testing.TB, p *process, r *receiver, n int, due func(i int) time.Time) {
	b.Helper()
	for i := 0; i < n; {
		var lines bytes.Buffer
		for range min(1000, n-i) {
			oneShot(&lines, r.url, due(i), patience)
			i++
		}
		if _, err := createBatch(p.url(""), lines.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}

func (r *receiver) await(b testing.TB, n int, within time.Duration) {
	b.Helper()
	for deadline := time.Now().Add(within); ; {
		r.mu.Lock()
		calls := r.calls
		r.mu.Unlock()
		if calls >= n {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("%d of %d calls arrived within %v", calls, n, within)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// BenchmarkLateness fires at a rate for some seconds and reports how late the
// calls arrived.
func BenchmarkLateness(b *testing.B) {
	for _, rate := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("%d-a-second", rate), func(b *testing.B) { benchLateness(b, rate) })
		b.Run(fmt.Sprintf("servers/%d-a-second", rate), func(b *testing.B) { benchLateness(b, rate, servers(b)...) })
	}
}

func benchLateness(b *testing.B, rate int, args ...string) {
	p, r := startProcess(b, args...), startReceiver(b)
	r.counting = true
	for range b.N {
		r.reset()
		n := rate * 10
		each := 40 * time.Microsecond
		if len(args) > 0 {
			each = 200 * time.Microsecond // creating them in a database takes longer
		}
		from := time.Now().Add(3*time.Second + time.Duration(n)*each)
		schedule(b, p, r, n, func(i int) time.Time { return from.Add(time.Duration(i) * time.Second / time.Duration(rate)) })
		if time.Now().After(from) {
			b.Fatal("creating took longer than the lead: the figure would be wrong")
		}
		r.await(b, n, time.Minute)
	}
	q := r.lateness(.5, .99, .999)
	b.ReportMetric(ms(q[0]), "lateness-p50-ms")
	b.ReportMetric(ms(q[1]), "lateness-p99-ms")
	b.ReportMetric(ms(q[2]), "lateness-p99.9-ms")
	b.ReportMetric(float64(r.early), "early")
}

// BenchmarkFires is the most fires a second, beside the bare loop in the same
// run: all due within a second, far more than the machine can call.
func BenchmarkFires(b *testing.B) {
	b.Run("400000-in-a-second", func(b *testing.B) { benchFires(b, 400_000, time.Second) })
	b.Run("100000-at-one-ms", func(b *testing.B) { benchFires(b, 100_000, 0) })
	b.Run("every-10ms", benchSustained)
}

// benchSustained keeps timers due every 10 ms for ten seconds, together nearly
// what the bare loop calls (or XTIMER_INTERVALS of them), and counts the calls of
// the last eight: journal, settling and all that follows run as long as the calls
// do. That is done in rounds, each with a process and data of its own, with the bare
// loop before and after each. On a machine that is shared both differ by a third from
// one minute to the next, so it is the median over the rounds that counts, of the ratio
// to the bare loop right before and right after.
func benchSustained(b *testing.B) {
	r, loop := startReceiver(b), newBare()
	r.counting = true
	first := startProcess(b)
	schedule(b, first, r, 1, func(int) time.Time { return time.Now() })
	r.await(b, 1, time.Minute)
	first.kill()
	loop.pass(b, *r.sample)
	var fires, due, heap, spent []float64
	for range sustainedRounds {
		p := startProcess(b)
		rate, _ := loop.best(loop.passes[len(loop.passes)-1])
		n := setting("XTIMER_INTERVALS", int(rate*.95/100))
		f, cpu, h := sustained(b, p, r, n)
		due, fires, heap, spent = append(due, float64(n)*100), append(fires, f), append(heap, h), append(spent, float64(cpu.Nanoseconds())/1000)
		loop.pass(b, *r.sample)
	}
	var ratios []float64
	for i, f := range fires {
		rate, _ := loop.best(loop.passes[i : i+2]...)
		ratios = append(ratios, f/rate)
		b.Logf("round %d: %.0f due/s, %.0f fires/s at %.1f us, bare %.0f calls/s: %.2f", i+1, due[i], f, spent[i], rate, ratios[i])
	}
	bare, bareSpent := loop.best(loop.passes...)
	b.ReportMetric(median(due), "due/s")
	b.ReportMetric(median(fires), "fires/s")
	b.ReportMetric(bare, "bare-calls/s")
	b.ReportMetric(median(ratios), "x-of-bare-loop")
	b.ReportMetric(median(spent), "cpu-us/fire")
	b.ReportMetric(float64(bareSpent.Nanoseconds())/1000, "bare-cpu-us/call")
	b.ReportMetric(median(heap), "alloc-B/fire")
	b.ReportMetric(float64(r.early), "early")
}

const sustainedRounds = 5

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// sustained is the fires a second of a process with so many timers due every
// 10 ms, and what each took of its processor time and allocated, in bytes. The
// process is killed.
func sustained(b *testing.B, p *process, r *receiver, n int) (fires float64, cpu time.Duration, heap float64) {
	for made := 0; made < n; {
		var lines bytes.Buffer
		for range min(500, n-made) {
			made++
			fmt.Fprintf(&lines, `{"app":"bench","name":"every-%d","schedule":{"every":"10ms"},"callback":{"url":%q}}`+"\n", made, r.url)
		}
		if _, err := createBatch(p.url(""), lines.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
	time.Sleep(2 * time.Second)
	heap = p.metric("go_memstats_alloc_bytes_total")
	calls, used, from := r.total(), p.cpu(), time.Now()
	time.Sleep(8 * time.Second)
	calls = r.total() - calls
	took, spent := time.Since(from), p.cpu()-used
	heap = p.metric("go_memstats_alloc_bytes_total") - heap
	p.kill()
	return float64(calls) / took.Seconds(), spent / time.Duration(calls), heap / float64(calls)
}

func benchFires(b *testing.B, n int, over time.Duration) {
	p, r := startProcess(b), startReceiver(b)
	r.counting = true
	var fires, api float64
	var spent time.Duration
	loop := newBare()
	for range b.N {
		r.reset()
		from := time.Now().Add(2*time.Second + time.Duration(n)*25*time.Microsecond)
		schedule(b, p, r, n, func(i int) time.Time { return from.Add(over * time.Duration(i) / time.Duration(n)) })
		if time.Now().After(from) {
			b.Fatal("creating took longer than the lead: the figure would be wrong")
		}
		time.Sleep(time.Until(from))
		cpu := p.cpu()
		slowest := time.Duration(0)
		for r.total() < n {
			asked := time.Now()
			resp, err := client.Get(p.url("/v1/timers?limit=1"))
			if err != nil || resp.StatusCode != http.StatusOK {
				b.Fatal("the API does not answer meanwhile: ", err)
			}
			resp.Body.Close()
			slowest = max(slowest, time.Since(asked))
			time.Sleep(10 * time.Millisecond)
			if time.Since(from) > 2*time.Minute {
				b.Fatalf("%d of %d calls arrived", r.total(), n)
			}
		}
		spent = (p.cpu() - cpu) / time.Duration(n)
		fires = max(fires, float64(n)/r.last.Sub(from).Seconds())
		api = max(api, ms(slowest))
		loop.pass(b, *r.sample)
	}
	bare, bareSpent := loop.best(loop.passes...)
	b.ReportMetric(fires, "fires/s")
	b.ReportMetric(bare, "bare-calls/s")
	b.ReportMetric(fires/bare, "x-of-bare-loop")
	b.ReportMetric(float64(spent.Nanoseconds())/1000, "cpu-us/fire")
	b.ReportMetric(float64(bareSpent.Nanoseconds())/1000, "bare-cpu-us/call")
	b.ReportMetric(api, "api-max-ms")
	b.ReportMetric(float64(r.early), "early")
}

func (r *receiver) total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

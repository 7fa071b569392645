package bench

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/bench/target"
)

// traffic is the recurring timers of an app that call a target, spread evenly over
// their interval.
type traffic struct {
	app    string
	target *target.Server
	rate   int           // calls a second
	every  time.Duration // of one timer; default 100 ms
	until  time.Time     // no due after it; zero: no end
	// timeout of a call; default 15 s
	timeout time.Duration

	from time.Time // the first due
	keys []target.Key
}

// create creates the timers; the first due is so long ahead.
func (f *traffic) create(t testing.TB, p *process, ahead time.Duration) {
	t.Helper()
	if f.every == 0 {
		f.every = 100 * time.Millisecond
	}
	f.from = time.Now().Truncate(time.Millisecond).Add(ahead)
	n := int(int64(f.rate) * f.every.Milliseconds() / 1000)
	if f.timeout == 0 {
		f.timeout = 15 * time.Second
	}
	end := ""
	if !f.until.IsZero() {
		end = fmt.Sprintf(`,"end_at":%d`, f.until.UnixMilli())
	}
	for made := 0; made < n; {
		var lines bytes.Buffer
		var dues []int64
		for ; made < n && len(dues) < 500; made++ {
			first := f.from.UnixMilli() + int64(made)*f.every.Milliseconds()/int64(n)
			fmt.Fprintf(&lines, `{"app":%q,"name":"every-%d","schedule":{"every":"%s","start_at":%d%s},"callback":{"url":%q,"timeout":"%s"}}`+"\n",
				f.app, names.Add(1), f.every, first, end, f.target.URL, f.timeout)
			dues = append(dues, first)
		}
		f.keys = append(f.keys, createKeys(t, p, lines.Bytes(), dues)...)
	}
}

// owed are the tasks that are due between two instants.
func (f *traffic) owed(from, to time.Time) (keys []target.Key) {
	for _, k := range f.keys {
		for ; k.Due <= to.UnixMilli(); k.Due += f.every.Milliseconds() {
			if k.Due >= from.UnixMilli() {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// createKeys creates a batch, and again for a while where it was refused for want of
// memory or of the disk. It returns the keys of the first dues.
func createKeys(t testing.TB, p *process, lines []byte, dues []int64) (keys []target.Key) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		ids, err := createBatch(p.url(""), lines)
		if err != nil && time.Now().Before(end) && p.alive() {
			continue // names make it safe to ask again
		}
		if err != nil {
			t.Fatalf("a batch of timers cannot be created: %v", err)
		}
		for i, id := range ids {
			n, err := strconv.ParseUint(id, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, target.Key{Timer: n, Due: dues[i]})
		}
		return keys
	}
}

// shots creates one-shots with a body of so many bytes (0: the default one); due
// tells the due of each. It returns their keys.
func shots(t testing.TB, p *process, app string, to *target.Server, n, size int, due func(i int) time.Time) (keys []target.Key) {
	t.Helper()
	body := ""
	if size > 0 {
		body = fmt.Sprintf(`,"body_text":"%s"`, bytes.Repeat([]byte("x"), size))
	}
	part := min(1000, 1<<20/(size+300)+1)
	var next atomic.Int64
	var mu sync.Mutex
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for {
				i := int(next.Add(int64(part))) - part
				if i >= n || t.Failed() {
					return
				}
				var lines bytes.Buffer
				var dues []int64
				for ; i < n && len(dues) < part; i++ {
					at := due(i).UnixMilli()
					fmt.Fprintf(&lines, `{"app":%q,"name":"shot-%d","schedule":{"at":%d},"callback":{"url":%q%s}}`+"\n",
						app, names.Add(1), at, to.URL, body)
					dues = append(dues, at)
				}
				ks := createKeys(t, p, lines.Bytes(), dues)
				mu.Lock()
				keys = append(keys, ks...)
				mu.Unlock()
			}
		})
	}
	work.Wait()
	return keys
}

// listen starts a target that answers after a delay, listenMute one that is mute.
func listen(t testing.TB, delay time.Duration) *target.Server {
	t.Helper()
	return closing(t)(target.Listen(delay))
}

func listenMute(t testing.TB) *target.Server {
	t.Helper()
	return closing(t)(target.ListenMute())
}

func closing(t testing.TB) func(*target.Server, error) *target.Server {
	t.Helper()
	return func(g *target.Server, err error) *target.Server {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Close)
		return g
	}
}

// p99 is how late the calls of a target are in a while from now.
func (p *process) p99(g *target.Server, while time.Duration) (late time.Duration) {
	g.Reset()
	p.sit(while)
	g.Look(func(l *target.Log) { late = l.Late(.99) })
	return late
}

// awaitCalls waits until all tasks were called, and returns how many were not. It asks
// for each task once, a few at a time: the receiver answers no call meanwhile.
func (p *process) awaitCalls(g *target.Server, owed []target.Key, within time.Duration) (missing int) {
	const few = 5000
	for end := time.Now().Add(within); len(owed) > 0; {
		called := 0
		g.Look(func(l *target.Log) {
			for called < min(few, len(owed)) && l.Calls[owed[called]] > 0 {
				called++
			}
		})
		if owed = owed[called:]; called == few {
			continue
		}
		if time.Now().After(end) || !p.alive() {
			g.Look(func(l *target.Log) { missing = l.Missing(owed) })
			return missing
		}
		time.Sleep(min(20*time.Millisecond, time.Until(end)))
	}
	return 0
}

// alive reports whether the process has not ended.
func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// sit watches the process for a while and returns its most resident memory.
func (p *process) sit(while time.Duration) (most int64) {
	p.t.Helper()
	for end := time.Now().Add(while); ; time.Sleep(min(100*time.Millisecond, time.Until(end))) {
		if !p.alive() {
			p.t.Fatalf("the process has ended: %v", p.cmd.ProcessState)
		}
		if most = max(most, p.rss()); time.Now().After(end) {
			return most
		}
	}
}

package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// trial is a load on a real xtimer that is stopped and started again while it
// fires: what was acknowledged is held against what arrived.
type trial struct {
	t    *testing.T
	p    *process
	r    *receiver
	rate int // one-shots a second; with them every 100 ms timers fire

	mu    sync.Mutex
	acked map[string]bool // keys
	stops []stop
}

type stop struct{ down, up time.Time }

func setting(name string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return def
}

// TestKill kills the real binary in the middle of firing, again and again:
// nothing is missing, nothing early, and every repeat stands beside a kill.
//
// XTIMER_KILLS and XTIMER_RATE make it longer and heavier.
func TestKill(t *testing.T) {
	tr := &trial{t: t, rate: setting("XTIMER_RATE", 1000)}
	tr.run(setting("XTIMER_KILLS", 6), func() { tr.p.kill() })
	tr.check(true)
}

// TestTerminate ends it with SIGTERM under load: nothing missing, no repeats.
func TestTerminate(t *testing.T) {
	tr := &trial{t: t, rate: setting("XTIMER_RATE", 1000)}
	tr.run(setting("XTIMER_TERMS", 4), func() {
		if code := tr.p.terminate(); code != 0 {
			t.Errorf("exit status %d after SIGTERM", code)
		}
	})
	tr.check(false)
}

func (tr *trial) run(stops int, end func()) {
	tr.acked = map[string]bool{}
	tr.p, tr.r = startProcess(tr.t), startReceiver(tr.t)
	anchor := tr.intervals(20)
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { tr.load(done) })
	time.Sleep(2 * time.Second)
	for range stops {
		time.Sleep(time.Duration(300+rand.IntN(1200)) * time.Millisecond)
		s := stop{down: time.Now()}
		end()
		took := tr.p.start()
		s.up = time.Now()
		tr.mu.Lock()
		tr.stops = append(tr.stops, s)
		tr.mu.Unlock()
		if took > 3*time.Second {
			tr.t.Errorf("ready only after %v", took)
		}
	}
	time.Sleep(time.Second)
	close(done)
	wg.Wait()
	// What the intervals owe up to here, and the last one-shots.
	until := time.Now().Add(3 * time.Second).UnixMilli()
	for id, from := range anchor {
		for due := from + 100; due <= until; due += 100 {
			tr.acked[fmt.Sprintf("%s_%d", id, due)] = true
		}
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) && tr.missing() > 0; {
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(500 * time.Millisecond) // a repeat might be under way
}

// intervals creates timers every 100 ms and tells their anchors by id.
func (tr *trial) intervals(n int) map[string]int64 {
	anchors := map[string]int64{}
	for i := range n {
		body := fmt.Sprintf(`{"app":"bench","name":"every-%d","schedule":{"every":"100ms"},"callback":{"url":%q}}`, i, tr.r.url)
		r, err := client.Post(tr.p.url("/v1/timers"), "application/json", strings.NewReader(body))
		if err != nil {
			tr.t.Fatal(err)
		}
		var out struct {
			ID        string
			CreatedAt time.Time `json:"created_at"`
		}
		err = json.NewDecoder(r.Body).Decode(&out)
		r.Body.Close()
		if err != nil || r.StatusCode != 201 {
			tr.t.Fatalf("status %d: %v", r.StatusCode, err)
		}
		anchors[out.ID] = out.CreatedAt.UnixMilli()
	}
	return anchors
}

// load creates one-shots at the rate, due 1 to 3 s later, until done.
func (tr *trial) load(done chan struct{}) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		var b bytes.Buffer
		var dues []int64
		for range max(tr.rate/20, 1) {
			due := time.Now().Add(time.Second + time.Duration(rand.Int64N(int64(2*time.Second))))
			oneShot(&b, tr.r.url, due)
			dues = append(dues, due.UnixMilli())
		}
		ids, err := createBatch("http://"+tr.p.addr, b.Bytes())
		if err != nil {
			continue // not acknowledged: may be there or not
		}
		tr.mu.Lock()
		for i, id := range ids {
			tr.acked[fmt.Sprintf("%s_%d", id, dues[i])] = true
		}
		tr.mu.Unlock()
	}
}

func (tr *trial) missing() (n int) {
	tr.r.mu.Lock()
	defer tr.r.mu.Unlock()
	for k := range tr.acked {
		if len(tr.r.arrivals[k]) == 0 {
			n++
		}
	}
	return n
}

// check holds what arrived against what was acknowledged.
func (tr *trial) check(repeatsAllowed bool) {
	t := tr.t
	missing := tr.missing()
	tr.r.mu.Lock()
	defer tr.r.mu.Unlock()
	repeats, unexplained := 0, 0
	perStop := make([]int, len(tr.stops))
	for k, at := range tr.r.arrivals {
		for _, again := range at[1:] {
			repeats++
			// The stop that explains it: the first arrival was before it, or was
			// still in a socket when it came, and the repeat came after it.
			i := sort.Search(len(tr.stops), func(i int) bool { return tr.stops[i].up.After(at[0]) })
			if i == len(tr.stops) || again.Before(tr.stops[i].down) || tr.stops[i].down.Sub(at[0]) > 2*time.Second {
				unexplained++
				t.Logf("unexplained repeat of %s: %v", k, at)
				continue
			}
			perStop[i]++
		}
	}
	most := 0
	for _, n := range perStop {
		most = max(most, n)
	}
	limit := 512 + (tr.rate+200)/4 // calls in flight + 250 ms of traffic
	t.Logf("stops %d: acknowledged %d, arrived %d, missing %d, early %d, repeats %d (unexplained %d, most beside one stop %d)",
		len(tr.stops), len(tr.acked), len(tr.r.arrivals), missing, tr.r.early, repeats, unexplained, most)
	if missing > 0 || tr.r.early > 0 || unexplained > 0 || most > limit || !repeatsAllowed && repeats > 0 {
		t.Error("the promises do not hold")
	}
	if missing > 0 {
		n := 0
		for k := range tr.acked {
			if len(tr.r.arrivals[k]) == 0 && n < 10 {
				n++
				t.Logf("missing: %s (now %d)", k, time.Now().UnixMilli())
			}
		}
		for _, s := range tr.stops {
			t.Logf("stop: down %d up %d", s.down.UnixMilli(), s.up.UnixMilli())
		}
	}
}

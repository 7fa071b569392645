package bench

import (
	"bytes"
	"io"
	"strconv"
	"testing"
	"time"
)

// TestAllocations: a fire that goes well, from the wheel to history, allocates no
// more than ten objects, in the real binary: what the collector has to do is
// bounded by it, and with that its pauses.
func TestAllocations(t *testing.T) {
	p, r := startProcess(t, "--pprof"), startReceiver(t)
	r.counting = true
	(&trial{t: t, p: p, r: r}).createIntervals(200)
	r.await(t, 2000, time.Minute) // connections, pools and tables are there
	const fires = 10_000
	calls, objects := r.total(), mallocs(t, p)
	r.await(t, calls+fires, time.Minute)
	objects, calls = mallocs(t, p)-objects, r.total()-calls
	each := objects / float64(calls)
	t.Logf("%.1f objects a fire, of %d", each, calls)
	if each > 10 {
		t.Error("that is more than ten")
	}
}

// mallocs is how many objects a process has allocated.
func mallocs(t *testing.T, p *process) float64 {
	t.Helper()
	r, err := client.Get(p.url("/debug/pprof/allocs?debug=1"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(b, []byte("\n# Mallocs = "))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseFloat(string(line), 64)
	if err != nil {
		t.Fatalf("status %d: %v", r.StatusCode, err)
	}
	return n
}

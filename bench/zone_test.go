package bench

import (
	bytesOf "encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestZonesChange changes the time zone database between two runs: dues up to the
// end of the first are by the old rules, those after it by the new. A due that the
// new rules bring nearer is called then, though the timer was stored with a later
// one; a reading of the clock that was called and comes again by the new rules is
// another due, and is called; none is called twice.
func TestZonesChange(t *testing.T) {
	const (
		nearer = 2701 // s; odd, so that dues at even seconds become odd ones
		again  = 14
	)
	dir := t.TempDir()
	t.Setenv("ZONEINFO", dir)
	writeZone(t, dir, "Test/Nearer", 0)
	writeZone(t, dir, "Test/Again", 0)
	p, r := startProcess(t), startReceiver(t)
	from := time.Now().UTC().Truncate(time.Second).Add(3 * time.Second)
	daily := func(name, zone string, wall time.Time) (id string) {
		return createCron(t, p, r, name, zone, wall.Format("5 4 15 * * *"))
	}
	beat := createCron(t, p, r, "beat", "Test/Nearer", "*/2 * * * * *")
	soon := from.Add(again * time.Second)
	moved := daily("moved", "Test/Nearer", soon.Add(nearer*time.Second))
	twice := daily("twice", "Test/Again", from)
	time.Sleep(time.Until(from.Add(time.Second)))
	if status := p.terminate(); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	end := time.Now()
	writeZone(t, dir, "Test/Nearer", nearer)
	writeZone(t, dir, "Test/Again", -again)
	p.start()
	if time.Now().After(soon) {
		t.Skip("this machine is too busy: the start took until after the due")
	}
	for deadline := soon.Add(20 * time.Second); time.Now().Before(deadline) && (r.calledAt(moved, soon) == 0 || r.calledAt(twice, soon) == 0); {
		time.Sleep(50 * time.Millisecond)
	}
	for what, n := range map[string]int{
		"what was brought nearer":                    r.calledAt(moved, soon),
		"what comes again, the first time":           r.calledAt(twice, from),
		"what comes again, the second time":          r.calledAt(twice, soon),
		"what is due each 2 s, by the old":           r.calledAt(beat, from.Truncate(2*time.Second)),
		"what is due each 2 s, by the new":           r.calledAt(beat, soon.Truncate(2*time.Second).Add(-time.Second)),
		"what is due each 2 s, the first by the new": r.calledAt(beat, end.Add(time.Second).Truncate(2*time.Second).Add(time.Second)),
	} {
		if n != 1 {
			t.Errorf("%s: called %d times", what, n)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, at := range r.arrivals {
		id, digits, _ := strings.Cut(key, "_")
		due, _ := strconv.ParseInt(digits, 10, 64)
		if len(at) > 1 {
			t.Errorf("%s was called %d times", key, len(at))
		}
		if id == beat && due%2000 == 0 != (due <= end.UnixMilli()) {
			t.Errorf("%s is not by the rules of its run, which ended at %d", key, end.UnixMilli())
		}
	}
	if r.early > 0 {
		t.Errorf("%d calls were early", r.early)
	}
}

// createCron creates a timer by a cron line, all of whose dues are called.
func createCron(t *testing.T, p *process, r *receiver, name, zone, line string) (id string) {
	t.Helper()
	body := fmt.Sprintf(`{"app":"bench","name":%q,"schedule":{"cron":%q,"time_zone":%q},"misfire":{"policy":"all"},"callback":{"url":%q}}`, name, line, zone, r.url)
	res, err := client.Post(p.url("/v1/timers"), "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var out struct{ ID, Detail string }
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil || res.StatusCode != http.StatusCreated {
		t.Fatalf("status %d: %v %s", res.StatusCode, err, out.Detail)
	}
	return out.ID
}

// calledAt is how often a timer was called for a due.
func (r *receiver) calledAt(id string, due time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.arrivals[fmt.Sprintf("%s_%d", id, due.UnixMilli())])
}

// writeZone makes a zone of one offset (in seconds) in a zone database.
func writeZone(t *testing.T, dir, name string, offset int32) {
	t.Helper()
	b := append([]byte("TZif"), make([]byte, 16)...)
	for _, n := range []uint32{0, 0, 0, 0, 1, 4} { // counts; the last two: kinds of time, bytes of names
		b = bytesOf.BigEndian.AppendUint32(b, n)
	}
	b = bytesOf.BigEndian.AppendUint32(b, uint32(offset))
	b = append(b, 0, 0)
	b = append(b, "TST\x00"...)
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

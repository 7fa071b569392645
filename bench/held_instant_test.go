package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"xtimer/bench/target"
)

// TestHeldAtOneInstant has one-shots due at one instant on a flow key of 1 call a second, in a
// control group of 512 MiB: resident memory is at most 300 MB, the calls of the key come one a
// second, the list of what waits says when each will be called, and at p99 another app's calls
// are at most 1.2 times as late as without the others.
func TestHeldAtOneInstant(t *testing.T) {
	n, watched := byForm(t, 20_000, 1_000_000), time.Duration(byForm(t, 3, 30))*time.Second
	const most = 300_000_000
	limitMemory(t, 512<<20)
	p, slow := startProcess(t), listen(t, 0)
	limit, _ := http.NewRequest("PUT", p.url("/v1/apps/held/flows/slow"), strings.NewReader(`{"rate":1,"per":"1s"}`))
	limit.Header.Set("Content-Type", "application/json")
	if r, err := client.Do(limit); err != nil || r.StatusCode/100 != 2 {
		t.Fatalf("the limit: %v, %v", r, err)
	}
	good := traffic{app: "good", target: listen(t, 0), rate: 100}
	good.create(t, p, 500*time.Millisecond)
	p.sit(time.Second)

	late := func(while time.Duration) (p99, own time.Duration, rss int64) {
		good.target.Reset()
		pulse := startPulse()
		rss = p.sit(while)
		good.target.Look(func(g *target.Log) { p99 = g.Late(.99) })
		return p99, pulse.end(), rss
	}
	alone, aloneOwn, _ := late(watched)
	due := time.Now().Add(time.Duration(n)*60*time.Microsecond + time.Second).Truncate(time.Second)
	heldShots(t, p, slow, n, due)
	if now := time.Now(); now.After(due) {
		t.Logf("creating took %v longer than the lead", round(now.Sub(due)))
	}
	p.sit(time.Until(due.Add(-100 * time.Millisecond)))
	from := time.Now()
	beside, own, rss := late(watched)
	calls := 0
	slow.Look(func(g *target.Log) { calls = g.Total })
	t.Logf("%d wait for a key of 1 call a second: %d MB resident, %d calls in %v; the neighbour alone %v late at p99, beside them %v; this machine's own timers %v and %v",
		n, rss/1e6, calls, round(time.Since(from)), alone, beside, round(aloneOwn), round(own))
	if rss > most {
		t.Errorf("%d MB are resident, of at most %d", rss/1e6, most/1_000_000)
	}
	// Beside them the machine's own timers are later, too, by what the server takes of the cores.
	if bar := max(alone*6/5, time.Millisecond) + max(0, own-aloneOwn); beside > bar {
		t.Errorf("the neighbour is %v late at p99, of at most %v", beside, bar)
	}
	if took := int(time.Since(from)/time.Second) + 2; calls == 0 || calls > took {
		t.Errorf("%d calls of the key in %d s", calls, took)
	}
	p.saysWhen(100)
}

// heldShots creates one-shots of a flow key, all due at one instant.
func heldShots(t *testing.T, p *process, to *target.Server, n int, due time.Time) {
	t.Helper()
	for made := 0; made < n; {
		var lines strings.Builder
		for range min(1000, n-made) {
			made++
			fmt.Fprintf(&lines, `{"app":"held","name":"held-%d","flow":["slow"],"schedule":{"at":%d},"callback":{"url":%q}}`+"\n", made, due.UnixMilli(), to.URL)
		}
		if _, err := createBatch(p.url(""), []byte(lines.String())); err != nil {
			t.Fatal(err)
		}
	}
}

// saysWhen asks for the first tasks that wait for the key: each is to be called a second after
// the one before.
func (p *process) saysWhen(n int) {
	t := p.t
	r, err := client.Get(p.url(fmt.Sprintf("/v1/apps/held/flows/slow/waiting?limit=%d", n)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var page struct {
		Tasks []struct {
			NextAttempt time.Time `json:"next_attempt"`
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&page); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("what waits: status %d, %v", r.StatusCode, err)
	}
	if len(page.Tasks) != n {
		t.Fatalf("%d tasks of a page of %d", len(page.Tasks), n)
	}
	for i, x := range page.Tasks[1:] {
		if gap := x.NextAttempt.Sub(page.Tasks[i].NextAttempt); gap < 900*time.Millisecond || gap > 1100*time.Millisecond {
			t.Fatalf("task %d is to be called %v after the one before, at %v", i+1, gap, x.NextAttempt)
		}
	}
}

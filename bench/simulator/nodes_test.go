package simulator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
)

// TestNodes runs seeds of three nodes, several at a time. A run that breaks a promise is
// kept in a file. XTIMER_SEED, XTIMER_SEEDS and XTIMER_SIMULATE are as of TestSimulate.
func TestNodes(t *testing.T) { runSeeds(t, fleets, setting("XTIMER_FAILURES", 3), oneFleet) }

// oneFleet runs one seed.
func oneFleet(t *testing.T, seed uint64) Outcome {
	t.Helper()
	stuck := time.AfterFunc(5*time.Minute, func() { panic(fmt.Sprintf("seed %d of several nodes does not end", seed)) })
	defer stuck.Stop()
	s := NewFleetScript(seed)
	out := SimulateFleet(t, s)
	if len(out.Broken) > 0 {
		path := filepath.Join(os.TempDir(), fmt.Sprintf("xtimer-nodes-%d.txt", seed))
		err := os.WriteFile(path, []byte(fmt.Sprintf("seed %d, %s\n%s\n%s", seed, s.Settings, strings.Join(out.Broken, "\n"), out.Trace)), 0o600)
		t.Errorf("seed %d breaks %d promises: %s\nXTIMER_SEED=%d repeats it; its trace is in %s (%v)",
			seed, len(out.Broken), strings.Join(out.Broken[:min(len(out.Broken), 5)], "\n    "), seed, path, err)
	}
	return out
}

// TestCallsOfALifeThatFailed: a life that ends because MySQL has lost what was stored calls
// again, marked, what was under way when that is noticed.
func TestCallsOfALifeThatFailed(t *testing.T) {
	const loses, lost, slow = 20 * time.Second, 3 * time.Second, 22500 * time.Millisecond
	s := &FleetScript{Nodes: 1, Starts: []time.Duration{0}, Script: Script{
		Epoch: epochs[0], Calm: time.Minute, Settings: Settings{Workers: 8, Window: 10 * time.Minute, Spacing: -1, MemTable: 256 << 10, Waiting: 40},
	}}
	s.Faults = []NodeStep{{Kind: AllBack, Node: -1, At: loses, For: lost}}
	for n := 0; len(s.Steps) < 2; n++ {
		d := engine.NewDefinition()
		d.App, d.Name, d.Callback.URL, d.Callback.Timeout = "app", fmt.Sprint("t", n), "http://127.0.0.1:1/", 2*time.Second
		due := []time.Duration{loses + time.Second, slow}[len(s.Steps)]
		d.Schedule.At = s.Epoch.Add(due).UnixMilli()
		c := &engine.Call{Timer: &engine.Timer{Definition: d}, Key: engine.Key{Due: d.Schedule.At}, Attempt: 1}
		if a := (&machine{script: &s.Script}).answer(c); a.dial == 0 && (a.after == d.Callback.Timeout) == (due == slow) {
			s.Steps = append(s.Steps, Step{At: 3*time.Second + time.Duration(n)*time.Millisecond, Kind: Create, Name: d.Name, Definition: d})
		}
	}
	out := SimulateFleet(t, s)
	if len(out.Broken) > 0 || out.Lives != 2 || !strings.Contains(out.Trace, "attempt 1 again by life 2") {
		t.Errorf("%d lives, broken: %q\n%s", out.Lives, out.Broken, out.Trace)
	}
}

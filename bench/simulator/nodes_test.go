package simulator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestNodes runs seeds of three nodes, several at a time. A run that breaks a promise is
// kept in a file. XTIMER_SEED, XTIMER_SEEDS and XTIMER_SIMULATE are as of TestSimulate.
func TestNodes(t *testing.T) {
	first, count := asked(fleets)
	until := time.Time{}
	if d, err := time.ParseDuration(os.Getenv("XTIMER_SIMULATE")); err == nil {
		until, count = time.Now().Add(d), 1<<62
	}
	var calls, lives, failed, ran atomic.Int64
	minute := time.Tick(time.Minute)
	several(t, func(t *testing.T, n uint64) (over bool) {
		if n >= count || failed.Load() >= int64(setting("XTIMER_FAILURES", 3)) || !until.IsZero() && time.Now().After(until) {
			return true
		}
		out := oneFleet(t, first+n)
		if len(out.Broken) > 0 {
			failed.Add(1)
		}
		calls.Add(int64(out.Calls))
		lives.Add(int64(out.Lives))
		ran.Add(1)
		select {
		case <-minute:
			t.Logf("%d seeds ran; XTIMER_SEED=%d goes on", ran.Load(), first+uint64(ran.Load()))
		default:
		}
		return false
	})
	t.Logf("%d seeds from %d on: %d calls in %d lives", ran.Load(), first, calls.Load(), lives.Load())
}

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

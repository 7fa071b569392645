package simulator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

package simulator

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
)

// How many seeds each test runs. For TestSimulate XTIMER_SEEDS says it, XTIMER_SEED
// which is the first (alone: that one only), XTIMER_SIMULATE how long instead: 1h;
// for TestSettings XTIMER_SETTINGS says it.
var seeds, repeats, settings, fleets uint64 = 200, 4, 20, 40

func setting(name string, def uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return def
}

// asked is the first seed of TestSimulate, and how many it runs.
func asked(usual uint64) (first, count uint64) {
	first, count = setting("XTIMER_SEED", 0), usual
	switch {
	case os.Getenv("XTIMER_SEED") != "":
		count = 1
	case testing.Short():
		count = min(count, 20)
	}
	return first, setting("XTIMER_SEEDS", count)
}

func TestAsked(t *testing.T) {
	for _, c := range []struct {
		seed, seeds  string
		first, count uint64
	}{
		{"7", "", 7, 1},
		{"0", "", 0, 1},
		{"7", "20", 7, 20},
		{"", "300", 0, 300},
	} {
		t.Setenv("XTIMER_SEED", c.seed)
		t.Setenv("XTIMER_SEEDS", c.seeds)
		if first, count := asked(seeds); first != c.first || count != c.count {
			t.Errorf("XTIMER_SEED=%s XTIMER_SEEDS=%s runs %d seeds from %d on", c.seed, c.seeds, count, first)
		}
	}
}

// TestSimulate runs seeds, several at a time. A run that breaks a promise is kept
// in a file.
func TestSimulate(t *testing.T) {
	failures := uint64(3)
	if os.Getenv("XTIMER_MUTATED") != "" {
		failures = 1
	}
	runSeeds(t, seeds, failures, one)
}

// runSeeds runs as many seeds as are asked for, else count, until so many have failed.
func runSeeds(t *testing.T, count uint64, failures uint64, run func(*testing.T, uint64) Outcome) {
	first, count := asked(count)
	until := time.Time{}
	if d, err := time.ParseDuration(os.Getenv("XTIMER_SIMULATE")); err == nil {
		until, count = time.Now().Add(d), 1<<62
	}
	var calls, lives, failed, ran atomic.Uint64
	minute := time.Tick(time.Minute)
	several(t, func(t *testing.T, n uint64) (over bool) {
		if n >= count || failed.Load() >= failures || !until.IsZero() && time.Now().After(until) {
			return true
		}
		out := run(t, first+n)
		if len(out.Broken) > 0 {
			failed.Add(1)
		}
		calls.Add(uint64(out.Calls))
		lives.Add(uint64(out.Lives))
		ran.Add(1)
		select {
		case <-minute:
			t.Logf("%d seeds ran; XTIMER_SEED=%d goes on", ran.Load(), first+ran.Load())
		default:
		}
		return false
	})
	t.Logf("%d seeds from %d on: %d calls in %d lives", ran.Load(), first, calls.Load(), lives.Load())
}

// several does f with 0, 1, 2 …, as many at a time as there are cores, until it is over.
func several(t *testing.T, f func(t *testing.T, n uint64) (over bool)) {
	var next atomic.Uint64
	t.Run("at", func(t *testing.T) {
		for w := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				for !f(t, next.Add(1)-1) {
				}
			})
		}
	})
}

// one runs one seed.
func one(t *testing.T, seed uint64) Outcome {
	t.Helper()
	// A bubble cannot be interrupted from inside, and should tell which seed it was.
	stuck := time.AfterFunc(5*time.Minute, func() { panic(fmt.Sprintf("seed %d does not end", seed)) })
	defer stuck.Stop()
	s := NewScript(seed)
	out := Simulate(t, s)
	if len(out.Broken) > 0 {
		path := filepath.Join(os.TempDir(), fmt.Sprintf("xtimer-simulator-%d.txt", seed))
		err := os.WriteFile(path, []byte(fmt.Sprintf("seed %d, %s\n%s\n%s", seed, s.Settings, strings.Join(out.Broken, "\n"), out.Trace)), 0o600)
		t.Errorf("seed %d breaks %d promises: %s\nXTIMER_SEED=%d repeats it; its trace is in %s (%v)",
			seed, len(out.Broken), strings.Join(out.Broken[:min(len(out.Broken), 5)], "\n    "), seed, path, err)
	}
	return out
}

// TestRepeat runs a seed twice: the same steps at the same instants, and where
// nothing fails, the same end of every due.
func TestRepeat(t *testing.T) {
	for seed := range repeats {
		var steps, final [2][]string
		for i := range steps {
			out := Simulate(t, NewScript(seed))
			steps[i] = out.Steps
			s := NewScript(seed)
			s.peace()
			final[i] = Simulate(t, s).Final
		}
		if len(steps[0]) < 10 || !slices.Equal(steps[0], steps[1]) {
			for j := range steps[0] {
				if j < len(steps[1]) && steps[0][j] != steps[1][j] {
					t.Errorf("seed %d: two runs had other steps: %s, %s", seed, steps[0][j], steps[1][j])
					break
				}
			}
		}
		if d := differ(final[0], final[1]); d != "" || len(final[0]) == 0 {
			t.Errorf("seed %d: two runs ended differently: %s", seed, d)
		}
	}
}

// peace takes the faults, the limits and the lies out of a script, and what depends on how
// long things take: a run by hand is called or cancelled by a change in the same ms,
// and dues that come at once, as those of a catch-up, overlap or do not.
func (s *Script) peace() {
	s.Steps = slices.DeleteFunc(s.Steps, func(st Step) bool { return st.Kind >= SetLimit || st.Kind == Retry })
	s.Steps = slices.CompactFunc(s.Steps, func(a, b Step) bool { return a.Name == b.Name && b.At-a.At < 2*time.Millisecond })
	for i := range s.Steps {
		d := &s.Steps[i].Definition
		if d.Delivery = engine.AtLeastOnce; d.Overlap == engine.OverlapSkip {
			d.Overlap = engine.OverlapAllow
		}
	}
	s.Honest, s.Pace = true, 0
}

// TestSettings runs scripts under different settings, and with restarts: what
// becomes of each due is the same.
func TestSettings(t *testing.T) {
	want := setting("XTIMER_SETTINGS", settings)
	var compared atomic.Uint64
	several(t, func(t *testing.T, n uint64) (over bool) {
		if compared.Load() >= want {
			return true
		}
		if alike(t, 1000+n) {
			compared.Add(1)
		}
		return t.Failed()
	})
	t.Logf("%d scripts under %d settings each", compared.Load(), len(others)+1)
}

// others are settings beside those of a script, and how many steps come between
// two restarts, 0: none.
var others = []struct {
	Settings
	restart int
}{
	{Settings{2, 2 * time.Minute, -1, 256 << 10, 4, 1, 64 << 10}, 0},
	{Settings{1024, time.Hour, 40 * time.Millisecond, 64 << 20, 1000, 0, 0}, 7},
	{Settings{8, 10 * time.Minute, time.Millisecond, 1 << 20, 40, 8, 0}, 14},
}

// alike compares what comes of a script under others; false when it has too few dues.
func alike(t *testing.T, seed uint64) bool {
	s := NewScript(seed)
	s.peace()
	want := Simulate(t, s).Final
	if len(want) < 10 {
		return false
	}
	for _, o := range others {
		s := NewScript(seed)
		s.peace()
		s.Settings = o.Settings
		if o.restart > 0 {
			s.restart(o.restart)
		}
		out := Simulate(t, s)
		if d := differ(out.Final, want); d != "" {
			t.Errorf("seed %d, %s, %d lives: %s", seed, o.Settings, out.Lives, d)
		}
		if len(out.Broken) > 0 {
			t.Errorf("seed %d, %s: %s", seed, o.Settings, out.Broken[0])
		}
	}
	return true
}

// restart kills the process again and again, 3 ms before a step.
func (s *Script) restart(every int) {
	var all []Step
	for i, st := range s.Steps {
		if i%every == every-1 && st.At > s.Steps[i-1].At+10*time.Millisecond {
			all = append(all, Step{At: st.At - 3*time.Millisecond, Kind: Crash, Kept: i % 2 * 100})
		}
		all = append(all, st)
	}
	s.Steps = all
}

// differ says in short how two ends differ.
func differ(got, want []string) string {
	var out []string
	for _, x := range got {
		if _, ok := slices.BinarySearch(want, x); !ok {
			out = append(out, "+ "+x)
		}
	}
	for _, x := range want {
		if _, ok := slices.BinarySearch(got, x); !ok {
			out = append(out, "- "+x)
		}
	}
	return strings.Join(out[:min(len(out), 6)], "; ")
}

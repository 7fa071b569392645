//go:build race

package simulator

import (
	"os"
	"testing"
)

// A seed takes ten times as long with the race detector.
func init() { seeds, repeats, settings = 24, 1, 2 }

// TestManySeeds runs in every run of the tests as many as without the race
// detector: faults that meet in one seed of a hundred are not in the first few.
func TestManySeeds(t *testing.T) {
	if os.Getenv("XTIMER_MUTATED") != "" || testing.Short() {
		t.Skip("this is a mutant, or in a hurry")
	}
	if out, err := many(t, 200, ""); err != nil {
		t.Errorf("%v\n%s", err, tail(out))
	}
}

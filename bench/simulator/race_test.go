//go:build race

package simulator

import (
	"bytes"
	"os"
	"regexp"
	"testing"
)

// A seed takes ten times as long with the race detector, so few seeds look for races. TestManySeeds
// runs TestRepeat and TestSettings without the detector.
func init() { seeds, repeats, settings, fleets = 4, 0, 0, 3 }

// TestManySeeds runs in every run of the tests as many as without the race
// detector: faults that meet in one seed of a hundred are not in the first few.
// What it leaves when it fails stays.
func TestManySeeds(t *testing.T) {
	if os.Getenv("XTIMER_MUTATED") != "" || testing.Short() {
		t.Skip("this is a mutant, or in a hurry")
	}
	dir, err := os.MkdirTemp("", "xtimer-simulator-")
	if err != nil {
		t.Fatal(err)
	}
	out, err := many(t, dir, "^Test(Simulate|Settings|Repeat)$", 150, "")
	if err != nil {
		broken := regexp.MustCompile(`(?m)^.*seed \d+[ ,].*$`).FindAll(out, 5)
		t.Fatalf("%v; the traces and all that was said are in %s\n%s\n%s", err, dir, bytes.Join(broken, []byte("\n")), tail(out))
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

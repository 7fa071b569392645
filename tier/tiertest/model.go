package tiertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"xtimer/engine"
)

// Model makes the same random calls to a tier and to one that is plainly right,
// and wants the same outcomes.
func Model(t *testing.T, make, model func() engine.Cold) {
	rapid.Check(t, func(rt *rapid.T) {
		got, want := make(), model()
		for _, c := range []engine.Cold{got, want} {
			if err := c.Open(t.Context()); err != nil {
				rt.Fatal(err)
			}
			defer c.Close()
		}
		r := NewScript(func(label string, n int) int { return rapid.IntRange(0, n-1).Draw(rt, label) })
		for i := range rapid.IntRange(1, 60).Draw(rt, "steps") {
			step := r.Step()
			g, w := step.Do(t, got), step.Do(t, want)
			if g != w {
				rt.Fatalf("step %d, %s:\n got %s\nwant %s", i, step.Name, g, w)
			}
			if i%10 != 9 && rapid.IntRange(0, 9).Draw(rt, "look") > 0 {
				continue
			}
			compareDumps(t, rt, got, want)
		}
		compareDumps(t, rt, got, want)
	})
}

func compareDumps(t *testing.T, rt *rapid.T, got, want engine.Cold) {
	g, err := Dump(t, got, ScriptIDs())
	if err != nil {
		rt.Fatal(err)
	}
	w, err := Dump(t, want, ScriptIDs())
	if err != nil {
		rt.Fatal(err)
	}
	if g != w {
		rt.Fatalf("the tiers differ:\n%s", Diff(g, w))
	}
}

// Diff lists the lines that only one of two dumps has.
func Diff(got, want string) string {
	var out strings.Builder
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for _, l := range g {
		if !slices.Contains(w, l) {
			fmt.Fprintln(&out, " got", l)
		}
	}
	for _, l := range w {
		if !slices.Contains(g, l) {
			fmt.Fprintln(&out, "want", l)
		}
	}
	if out.Len() == 0 && got != want {
		return fmt.Sprintf("the same lines in another order:\n got %s\nwant %s", got, want)
	}
	return out.String()
}

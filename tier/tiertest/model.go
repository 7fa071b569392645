package tiertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"xtimer/engine"
)

// Dump writes out all that a cold tier promises to hold, in one order, so that
// two tiers, or one before and after a crash, can be held against each other.
// Recurring timers that are due are left out: their bounds are hints.
func Dump(t testing.TB, c engine.Cold, ids []engine.TimerID) (string, error) {
	ctx := t.Context()
	var out strings.Builder
	fail := func(err error) (string, error) { return "", err }
	counts, err := c.Counts(ctx)
	if err != nil {
		return fail(err)
	}
	fmt.Fprintf(&out, "counts %+v\n", counts)
	lines := map[string]bool{}
	for cursor := ""; ; {
		ts, next, err := c.Timers(ctx, engine.TimerFilter{}, cursor, 100)
		if err != nil {
			return fail(err)
		}
		for _, t := range ts {
			lines[fmt.Sprintf("timer %020d %x", t.ID, engine.AppendTimer(nil, t))] = true
			if t.Name == "" {
				continue
			}
			if n, err := c.TimerByName(ctx, t.App, t.Name); err != nil || n.ID != t.ID {
				return fail(fmt.Errorf("the name of timer %d leads to %v: %w", t.ID, n, err))
			}
		}
		if cursor = next; next == "" {
			break
		}
	}
	for _, l := range slices.Sorted(func(yield func(string) bool) {
		for l := range lines {
			if !yield(l) {
				return
			}
		}
	}) {
		fmt.Fprintln(&out, l)
	}
	for _, id := range ids {
		vs, err := c.Versions(ctx, id, 0, 100)
		if err != nil {
			return fail(err)
		}
		for _, v := range vs {
			fmt.Fprintf(&out, "version %x\n", engine.AppendTimer(nil, v))
		}
		rows, err := c.OwedPage(ctx, id, -1, 1<<20)
		if err != nil {
			return fail(err)
		}
		for _, o := range rows {
			fmt.Fprintf(&out, "owed %x\n", engine.AppendOwed(nil, &o))
		}
		if last, err := c.LastTask(ctx, id); err == nil {
			fmt.Fprintf(&out, "last %v\n", last.Key)
		}
	}
	lives, err := c.Lives(ctx, 0, 1000)
	if err != nil {
		return fail(err)
	}
	for _, l := range lives {
		fmt.Fprintf(&out, "life %d, %d versions, deleted %d\n", l.ID, len(l.Versions), l.Deleted)
	}
	var owed, shots []string
	if err := c.Owed(ctx, 0, engine.MaxDue, func(page []engine.Owed) error {
		for _, o := range page {
			owed = append(owed, fmt.Sprintf("by time %v %d\n", o.Key, o.NotBefore))
		}
		return nil
	}); err != nil {
		return fail(err)
	}
	lanes, err := c.Lanes(ctx, engine.MaxDue)
	if err != nil {
		return fail(err)
	}
	for _, lane := range lanes {
		rows, err := c.OwedIn(ctx, lane, engine.Place{}, engine.MaxDue, 1000)
		if err != nil {
			return fail(err)
		}
		for _, o := range rows {
			owed = append(owed, fmt.Sprintf("in lane %d %v %d\n", lane, o.Key, o.NotBefore))
		}
	}
	if err := c.Due(ctx, 0, engine.MaxDue, func(page []engine.Candidate) error {
		for _, cd := range page {
			if cd.Definition != nil {
				if t, err := engine.DecodeTimer(slices.Clone(cd.Definition)); err != nil || !t.Schedule.OneShot() {
					continue
				}
			}
			shots = append(shots, fmt.Sprintf("due %d %d\n", cd.ID, cd.Due))
		}
		return nil
	}); err != nil {
		return fail(err)
	}
	slices.Sort(owed)
	slices.Sort(shots)
	out.WriteString(strings.Join(owed, "") + strings.Join(shots, ""))
	for _, f := range []engine.TaskFilter{{}, {Statuses: []engine.TaskStatus{engine.Failed, engine.Dead, engine.Unknown, engine.Missed}}} {
		for before := (engine.Key{}); ; {
			ts, next, err := c.Tasks(ctx, f, before, 50)
			if err != nil {
				return fail(err)
			}
			for _, t := range ts {
				fmt.Fprintf(&out, "task %x\n", engine.AppendTask(nil, t))
			}
			if before = next; next == (engine.Key{}) {
				break
			}
		}
	}
	shards, err := c.Shards(ctx)
	if err != nil {
		return fail(err)
	}
	for i, sh := range shards {
		if i == 0 || sh != shards[i-1] { // and so up to the next
			fmt.Fprintf(&out, "shard %d %+v\n", i, sh)
		}
	}
	return out.String(), nil
}

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

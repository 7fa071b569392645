package simulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mutation is a bug that somebody could have made: some text of the program
// replaced by another.
type mutation struct {
	name  string
	edits []replacement
	// by is the test that has to notice it, a package and its name, where the simulator
	// is too small for it; "": the simulator.
	by [2]string
}

type replacement struct{ file, old, new string }

// mutations are what the simulator has to notice. The first few are tried in
// every run of the tests, all of them with XTIMER_MUTATIONS=1.
var mutations = []mutation{
	{name: "a task that the watermark passes gets no row", edits: []replacement{
		{"engine/scheduler/history.go", `t.owed && t.dirty && !t.live.held || !t.owed && passed`, `t.owed && t.dirty && !t.live.held`},
	}},
	{name: "fired 3 ms early", edits: []replacement{
		{"wheel/hand.go", `if earliest > now {`, `if earliest > now+3 {`},
		{"engine/scheduler/executor.go", `case now < t.Key.Due:`, `case now < t.Key.Due-3:`},
	}},
	{name: "a result is noted before the call", edits: []replacement{
		{"engine/scheduler/executor.go", "	out := e.call(&a.Call)\n", "	a.end(began, engine.Outcome{Class: engine.ClassOK, Code: 200, Sent: e.cfg.Now()})\n	a.Gate = nil\n	out := e.call(&a.Call)\n"},
		{"engine/scheduler/executor.go", "	a.end(began, out)\n	if a.over", "	if a.over"},
	}},
	{name: "the cold tier answers before the sync", edits: []replacement{
		{"tier/local/committer.go", `s.db.Apply(b, pebble.Sync)`, `s.db.Apply(b, pebble.NoSync)`},
	}},
	{name: "the journal does not sync", edits: []replacement{
		{"wal/committer.go", "		opts = pebble.Sync\n", "		opts = pebble.NoSync\n"},
	}},
	{name: "the journal forgets before a settle", edits: []replacement{
		{"engine/scheduler/history.go", "	caps := h.caps[:0]\n", "	_ = e.journal.Forget(next)\n	caps := h.caps[:0]\n"},
	}},
	{name: "a delete forgets memory only", edits: []replacement{
		{"engine/scheduler/change.go", `if _, err := applied(e.cfg.Cold.Apply(ctx, c)); err != nil {`, `if _, err := applied(engine.Applied{}, nil); ed.timer == nil && err == nil {
	} else if _, err := applied(e.cfg.Cold.Apply(ctx, c)); err != nil {`},
	}},
	{name: "a delete forgets the store only", edits: []replacement{
		{"engine/scheduler/change.go", `if lv != nil && !ed.keep {`, `if lv != nil && ed.timer == nil {
		lv.held = false
	} else if lv != nil && !ed.keep {`},
	}},
	{name: "a retry has another key", edits: []replacement{
		{"engine/scheduler/executor.go", `Call{Timer: e.bodies.whole(sh, lv, body), Key: t.Key,`, `Call{Timer: e.bodies.whole(sh, lv, body), Key: engine.Key{Timer: t.Key.Timer, Due: t.Key.Due + int64(min(t.LastAttempt(), 1))},`},
	}},
	{name: "what was begun is replayed though it ended", edits: []replacement{
		{"engine/scheduler/recover.go", "	delete(r.begun, t.Key)\n	return nil\n", "	return nil\n"},
	}},
	{name: "a row of owed is lost when a retry is settled", edits: []replacement{
		{"engine/scheduler/history.go", "	s.Owe = append(s.Owe, t.row())\n", "			if t.state != isRetrying {\n				s.Owe = append(s.Owe, t.row())\n			}\n"},
	}},
	{name: "misfires are called, not decided", edits: []replacement{
		{"engine/policy/misfire.go", "	if p.OneShot() || t.Misfire.Policy == engine.MisfireAll {\n", "	if true {\n"},
	}},
	{name: "an at_most_once call does not wait for its note", edits: []replacement{
		{"engine/scheduler/executor.go", `	if a.Timer.Delivery == engine.AtMostOnce {
		// The promise`, `	if a.Timer.Delivery == engine.AtMostOnce && t.Key.Due == 0 {
		// The promise`},
	}},
	{name: "dispatched twice", edits: []replacement{
		{"engine/scheduler/dispatch.go", "			ready = append(ready, t)\n", "			ready = append(ready, t, t)\n"},
		{"engine/scheduler/executor.go", `case t.state != isWaiting:`, `case t.state != isWaiting && t.state != isDone && t.state != isSending:`},
	}},
	{name: "a start does not look at what is owed", edits: []replacement{
		{"engine/scheduler/recover.go", `e.cfg.Cold.Lanes(ctx, r.now)`, `e.cfg.Cold.Lanes(ctx, -1)`},
	}},
	{name: "the horizon is raised after the scan", edits: []replacement{
		{"engine/scheduler/migrator.go", "		raise(&e.horizon, next)\n		if err", "		if err"},
		{"engine/scheduler/migrator.go", "		e.loaded.Store(next)\n", "		raise(&e.horizon, next)\n		e.loaded.Store(next)\n"},
	}},
	{name: "a change lets attempts start while it is committed", edits: []replacement{
		{"engine/scheduler/change.go", "			lv.held = true\n", ""},
	}},
	{name: "a call that is prepared goes to the former URL", edits: []replacement{
		{"engine/scheduler/attempt.go", `case t.live.def.Version != a.Timer.Version:`, `case t.live.def != a.Timer && t.Key.Due == 0:`},
	}},
	{name: "the watermark does not wait for the wheel", edits: []replacement{
		{"engine/scheduler/history.go", "	cut = min(cut, e.wheel.Low())\n", ""},
	}},
	{name: "a start forgets the dues that nobody had begun", edits: []replacement{
		{"engine/policy/misfire.go", "		d.Call(t, p, max(s[0], called), s[1])\n", ""},
	}},
	{name: "the latest misfire is called and skipped", edits: []replacement{
		{"engine/policy/misfire.go", "			skipped = latest - 1\n", "			skipped = latest\n"},
	}},
	{name: "a catch-up calls again what is in memory", edits: []replacement{
		{"engine/scheduler/misfire.go", "	c.d.Decide(lv.def, &lv.plan, sh.inMemory(lv, after, m.at).", "	c.d.Decide(lv.def, &lv.plan, policy.Spans(nil)."},
	}},
	{name: "a timer that has caught up stays out of the wheel", edits: []replacement{
		{"engine/scheduler/unfold.go", "	e.schedule(lv, c.after)\n", ""},
	}},
	{name: "a change counts the dues of a timer that is behind twice", edits: []replacement{
		{"engine/scheduler/cancel.go", "t.Status == engine.Enabled && !behind", "t.Status == engine.Enabled"},
	}},
	{name: "a start takes a timer for one that is still behind", edits: []replacement{
		{"engine/scheduler/rewind.go", "	r.pay = append(r.pay, o.Key)\n", ""},
	}},
	{name: "a start decides again what the journal knows", edits: []replacement{
		{"engine/scheduler/recover_plan.go", "	d.Decide(t, p, over.Open(p, w, r.now))\n", "	d.Decide(t, p, policy.Spans(nil).Open(p, w, r.now))\n"},
	}},
	{name: "a redelivery is not marked", edits: []replacement{
		{"engine/scheduler/executor.go", `Redelivered: t.redelivered,`, `Redelivered: false,`},
	}},
	{name: "a commit in doubt is taken for one that failed", edits: []replacement{
		{"engine/scheduler/change.go", `return errors.Is(err, engine.ErrUnavailable) || !errors.As(err, &f)`, `return !errors.As(err, &f)`},
	}},
	{name: "what is stale is called", edits: []replacement{
		{"engine/policy/retry.go", `return v, begun || max(`, `return v, true || begun || max(`},
	}},
	{name: "what is not stale yet is skipped", edits: []replacement{
		{"engine/policy/retry.go", `now-d.StaleAfter.Milliseconds())`, `now-d.StaleAfter.Milliseconds()/4)`},
	}},
	{name: "overlap is not looked at", edits: []replacement{
		{"engine/scheduler/executor.go", `lv.busy > 0 && lv.def.Overlap != engine.OverlapAllow:`, `lv.busy > 1<<30:`},
	}},
	{name: "a target that does not answer keeps its places", edits: []replacement{
		{"engine/fair/limit.go", "max(startLimit, l.calls))/2)", "max(startLimit, l.calls)))"},
	}},
	{name: "a lane takes more tasks into memory than it has room for", edits: []replacement{
		{"engine/scheduler/lanes.go", "if !l.spilled && l.room() >= 0 {", "if !l.spilled {"},
	}},
	{name: "bodies stay in memory whatever room there is", edits: []replacement{
		{"engine/scheduler/bodies.go", "if n := int64(h.Omitted); b.kept+n <= b.limit/2 && n <= b.free() {", "if n := int64(h.Omitted); n > 0 {"},
	}},
	{name: "a call is not looked at again before its first byte", edits: []replacement{
		{"engine/scheduler/attempt.go", "	again, ok := a.stands()\n	if ok {\n", "	again, ok := (*task)(nil), true\n	if ok {\n"},
	}},
	{name: "later attempts after a start are not marked", edits: []replacement{
		{"engine/scheduler/attempt.go", "	t.noted = false\n", "	t.noted, t.redelivered = false, false\n"},
	}},
	{name: "the record of a deleted timer has no name", edits: []replacement{
		{"engine/policy/row.go", "		t.App, t.Name = end.Former.App, end.Former.Name\n", ""},
	}},
	{name: "ids are made again after the clock was set back", edits: []replacement{
		{"engine/id.go", "if ms > m.ms || ms == m.ms && count > m.count {", "if ms > m.ms+1<<40 {"},
	}},
	{name: "a record of many dues counts too many", edits: []replacement{
		{"engine/policy/misfire.go", "r.DueLast, r.Count = last, n\n", "r.DueLast, r.Count = last, n+n/2\n"},
	}},
	{name: "a start forgets an operation on many timers", edits: []replacement{
		{"engine/scheduler/bulk.go", "bulkFiles(e.cfg.OperationsDir)", `bulkFiles("")`},
	}, by: [2]string{"../../engine/scheduler", "TestBulkGoesOnAfterAKill"}},
}

// TestMutationsFit: each still finds what it replaces, also where not all are tried.
func TestMutationsFit(t *testing.T) {
	for i := range mutations {
		mutations[i].mutated(t)
	}
}

// mutated writes the mutated files and an overlay for go build that puts them
// in the place of the true ones.
func (mu *mutation) mutated(t *testing.T) (overlay string) {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{}
	for _, e := range mu.edits {
		path, err := filepath.Abs(filepath.Join("../..", e.file))
		if err != nil {
			t.Fatal(err)
		}
		from := path
		if files[path] != "" {
			from = files[path]
		}
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(b), e.old); n != 1 {
			t.Fatalf("%q: %s has %d times what it replaces; it should have once: %s", mu.name, e.file, n, e.old)
		}
		to := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(to, []byte(strings.Replace(string(b), e.old, e.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		files[path] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": files})
	if err != nil {
		t.Fatal(err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// many runs tests in a process of its own, without the race detector: ten times
// as many seeds in the same time. Without an overlay it is the true program. Into
// dir go the traces of seeds that fail, and all that the process said.
func many(t *testing.T, dir, tests string, seeds int, overlay string) ([]byte, error) {
	t.Helper()
	cmd := exec.Command("go", "test", "-count=1", "-vet=off", "-overlay", overlay, "-run", tests, "-v", "-timeout", "10m", ".")
	cmd.Env = append(os.Environ(), "XTIMER_MUTATED=1", fmt.Sprint("XTIMER_SEEDS=", seeds), "TMPDIR="+dir)
	out, err := cmd.CombinedOutput()
	if err := os.WriteFile(filepath.Join(dir, "output.txt"), out, 0o600); err != nil {
		t.Error(err)
	}
	return out, err
}

// TestMutations puts bugs into the program: the simulator has to notice each.
func TestMutations(t *testing.T) {
	if os.Getenv("XTIMER_MUTATED") != "" {
		t.Skip("this is a mutant")
	}
	tried := 3
	if os.Getenv("XTIMER_MUTATIONS") != "" {
		tried = len(mutations)
	} else if testing.Short() {
		tried = 0
	}
	for i := range mutations {
		mu := &mutations[i]
		t.Run(strings.ReplaceAll(mu.name, " ", "-"), func(t *testing.T) {
			overlay := mu.mutated(t) // that the text is there is looked at always
			if i >= tried {
				return
			}
			if mu.by[0] != "" {
				mu.noticed(t, overlay)
				return
			}
			out, err := many(t, t.TempDir(), "^TestSimulate$", 300, overlay)
			found := regexp.MustCompile(`(?s)seed (\d+) breaks \d+ promises: ([^\n]*)`).FindSubmatch(out)
			ran := regexp.MustCompile(`(\d+) seeds from`).FindSubmatch(out)
			if err == nil || found == nil {
				t.Fatalf("no seed of 300 notices it: %v\n%s", err, tail(out))
			}
			trace := regexp.MustCompile(`its trace is in (\S+)`).FindSubmatch(out)
			if b, err := os.ReadFile(string(trace[1])); err != nil || !bytes.Contains(b, found[2]) {
				t.Errorf("the trace of seed %s does not tell what broke: %v", found[1], err)
			}
			t.Logf("noticed after %s seeds, by seed %s: %s", ran[1], found[1], found[2])
		})
	}
}

// noticed runs the test that has to notice the bug.
func (mu *mutation) noticed(t *testing.T, overlay string) {
	t.Helper()
	out, err := exec.Command("go", "test", "-count=1", "-vet=off", "-overlay", overlay, "-run", "^"+mu.by[1]+"$", mu.by[0]).CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("--- FAIL: "+mu.by[1]+" ")) {
		t.Fatalf("%s does not notice it: %v\n%s", mu.by[1], err, tail(out))
	}
	t.Logf("noticed by %s", mu.by[1])
}

func tail(b []byte) []byte { return b[max(0, len(b)-2000):] }

package simulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mutation is a bug that somebody could have made: some text of the program
// replaced by another.
type mutation struct {
	name  string
	edits []replacement
}

type replacement struct{ file, old, new string }

// mutations are what the simulator has to notice. The first few are tried in
// every run of the tests, all of them with XTIMER_MUTATIONS=1.
var mutations = []mutation{
	{"a task that the watermark passes gets no row", []replacement{
		{"engine/resident/settle.go", `return passed && !t.intends`, `return false`},
	}},
	{"a shared row goes with the first record", []replacement{
		{"engine/resident/state.go", `x.open == 0 && !x.parted`, `!x.parted`},
	}},
	{"a shared row goes, and its tasks get none", []replacement{
		{"engine/resident/settle.go", `return t.shared.parted && !t.timer.frozen`, `return false`},
	}},
	{"fired 3 ms early", []replacement{
		{"wheel/hand.go", `if earliest > now {`, `if earliest > now+3 {`},
		{"engine/resident/begin.go", "case now < t.Key.Due:\n", "case now < t.Key.Due-3:\n"},
		{"engine/resident/attempt.go", `case now < t.Key.Due: //`, `case now < t.Key.Due-3: //`},
	}},
	{"a result is noted before the call", []replacement{
		{"engine/scheduler/executor.go", "	out := e.call(&a.Call)\n", "	e.end(a, began, engine.Outcome{Class: engine.ClassOK, Code: 200, Sent: e.cfg.Now()})\n	a.Gate = nil\n	out := e.call(&a.Call)\n"},
		{"engine/scheduler/executor.go", "	e.end(a, began, out)\n	if a.Over", "	if a.Over"},
	}},
	{"the cold tier answers before the sync", []replacement{
		{"tier/local/committer.go", `s.db.Apply(b, pebble.Sync)`, `s.db.Apply(b, pebble.NoSync)`},
	}},
	{"the journal does not sync", []replacement{
		{"wal/committer.go", "		opts = pebble.Sync\n", "		opts = pebble.NoSync\n"},
	}},
	{"the journal forgets before a settle", []replacement{
		{"engine/scheduler/settle.go", "	caps := h.caps[:0]\n", "	_ = e.journal.Forget(next, nil)\n	caps := h.caps[:0]\n"},
	}},
	{"a delete forgets memory only", []replacement{
		{"engine/change/change.go", `	_, err = applied(e.cfg.Cold.Apply(ctx, c))`, `	if ed.timer != nil {
		_, err = applied(e.cfg.Cold.Apply(ctx, c))
	}`},
	}},
	{"a delete forgets the store only", []replacement{
		{"engine/resident/change.go", `	if lv := sh.timers[was.ID]; lv != nil {
		m.retire(`, `	if lv := sh.timers[was.ID]; lv != nil && next == nil {
		lv.frozen = false
	} else if lv != nil {
		m.retire(`},
	}},
	{"a retry has another key", []replacement{
		{"engine/resident/begin.go", `Call{Timer: m.Bodies.whole(sh, lv, body), Key: t.Key,`, `Call{Timer: m.Bodies.whole(sh, lv, body), Key: engine.Key{Timer: t.Key.Timer, Due: t.Key.Due + int64(min(t.LastAttempt(), 1))},`},
	}},
	{"what was begun is replayed though it ended", []replacement{
		{"engine/scheduler/start.go", "			delete(f.begun, t.Key)\n", ""},
	}},
	{"a row of owed is lost when a retry is settled", []replacement{
		{"engine/resident/state.go", "	s.Owe = append(s.Owe, m.owed(t))\n", "			if t.state != Retrying {\n				s.Owe = append(s.Owe, m.owed(t))\n			}\n"},
	}},
	{"misfires are called, not decided", []replacement{
		{"engine/policy/misfire.go", "	if p.OneShot() || t.Misfire.Policy == engine.MisfireAll {\n", "	if true {\n"},
	}},
	{"an at_most_once call does not wait for its note", []replacement{
		{"engine/scheduler/executor.go", "	case once:\n", "	case once && t.Key.Due == 0:\n"},
	}},
	{"dispatched twice", []replacement{
		{"engine/resident/add.go", "			ready = append(ready, t)\n", "			ready = append(ready, t, t)\n"},
		{"engine/resident/begin.go", "	case !m.isQueued(t):\n", "	case !m.isQueued(t) && t.state != Done && t.state != Sending:\n"},
	}},
	{"a start does not look at what is owed", []replacement{
		{"engine/scheduler/start.go", `e.waitInLanes(ctx, of, r.now)`, `e.waitInLanes(ctx, of, -1)`},
	}},
	{"the horizon is raised after the scan", []replacement{
		{"engine/scheduler/migrator.go", "		resident.Raise(&e.memory.Horizon, next)\n		if err", "		if err"},
		{"engine/scheduler/migrator.go", "		e.memory.Loaded.Store(next)\n", "		resident.Raise(&e.memory.Horizon, next)\n		e.memory.Loaded.Store(next)\n"},
	}},
	{"a change lets attempts start while it is committed", []replacement{
		{"engine/resident/timer.go", "			lv.frozen = true\n", ""},
	}},
	{"a call that is prepared goes to the former URL", []replacement{
		{"engine/resident/attempt.go", `case t.timer.def.Version != a.Timer.Version:`, `case t.timer.def != a.Timer && t.Key.Due == 0:`},
	}},
	{"the watermark does not wait for the wheel", []replacement{
		{"engine/scheduler/settle.go", "	cut = min(cut, e.memory.Wheel.LowUpTo(now))\n", ""},
	}},
	{"a start forgets the dues that nobody had begun", []replacement{
		{"engine/policy/misfire.go", "		d.Call(t, p, from, s[1])\n", ""},
	}},
	{"the latest misfire is called and skipped", []replacement{
		{"engine/policy/misfire.go", "min(s[1], from-1), engine.Skipped", "min(s[1], from), engine.Skipped"},
	}},
	{"a catch-up calls again what is in memory", []replacement{
		{"engine/resident/late.go", "	d.Judge(lv.def, &lv.plan, sh.duesOf(lv, after, x.at).", "	d.Judge(lv.def, &lv.plan, policy.Spans(nil)."},
	}},
	{"a timer that has caught up stays out of the wheel", []replacement{
		{"engine/resident/late.go", "	m.schedule(lv, after)\n", ""},
	}},
	{"a change counts the dues of a timer that is behind twice", []replacement{
		{"engine/resident/change.go", "t.Status == engine.Enabled && !behind", "t.Status == engine.Enabled && (behind || !behind)"},
	}},
	{"a start takes a timer for one that is still behind", []replacement{
		{"engine/scheduler/rewind.go", "	d.pay = append(d.pay, o.Key)\n", ""},
	}},
	{"a start decides again what the journal knows", []replacement{
		{"engine/scheduler/recover_plan.go", "	open := over.Open(p, w, r.now)", "	open := over[:0].Open(p, w, r.now)"},
	}},
	{"a redelivery is not marked", []replacement{
		{"engine/resident/begin.go", `Redelivered: t.past != noPast,`, `Redelivered: false,`},
	}},
	{"a commit in doubt is taken for one that failed", []replacement{
		{"engine/change/change.go", `return errors.Is(err, engine.ErrUnavailable) || !errors.As(err, &f)`, `return !errors.As(err, &f)`},
	}},
	{"what is stale is called", []replacement{
		{"engine/policy/retry.go", `return v, begun || max(`, `return v, true || begun || max(`},
	}},
	{"what is not stale yet is skipped", []replacement{
		{"engine/policy/retry.go", `now-d.StaleAfter.Milliseconds())`, `now-d.StaleAfter.Milliseconds()/4)`},
	}},
	{"tasks that wait for each other go in any order", []replacement{
		{"engine/resident/timer.go", `return lv.busy > 0 || lv.first() != t`, `return lv.busy > 0`},
	}},
	{"a row that changes its lane is not read again", []replacement{
		{"engine/scheduler/backlog.go", `return later.again, e.resumeAnew(ctx, moved, false)`, `return later.again, nil`},
	}},
	{"a due of a range is taken while its timer is being changed", []replacement{
		{"engine/resident/add.go", `case lv.frozen && due <= lv.rangeTo():`, `case lv.frozen && due <= lv.rangeTo() && due == 0:`},
	}},
	{"overlap is not looked at", []replacement{
		{"engine/resident/begin.go", `case !t.busy && lv.overlaps(t):`, `case !t.busy && lv.overlaps(t) && t.Key.Due == 0:`},
	}},
	{"a target that does not answer keeps its places", []replacement{
		{"engine/fair/limit.go", "max(startLimit, l.calls))/2)", "max(startLimit, l.calls)))"},
	}},
	{"a task of a key with an order does not wait for older rows", []replacement{
		{"engine/fair/order.go", "if it.due() > g.marked() {", "if it.due() > None-1 {"},
	}},
	{"a lane takes more tasks into memory than it has room for", []replacement{
		{"engine/resident/room.go", "if !l.isBehind(shard) && l.room() >= 0 {", "if !l.isBehind(shard) {"},
	}},
	{"bodies stay in memory whatever room there is", []replacement{
		{"engine/resident/bodies.go", "if n := int64(h.Omitted); b.kept+n <= b.limit/2 && n <= b.free() {", "if n := int64(h.Omitted); n > 0 {"},
	}},
	{looksOnce, []replacement{
		{"engine/resident/attempt.go", "	again, ok := a.stands(now)\n", "	again, ok := (*Task)(nil), true\n"},
	}},
	{"later attempts after a start are not marked", []replacement{
		{"engine/resident/attempt.go", "	if t.past == wasUnended {\n		t.past = mayRepeat\n	}\n", "	t.past = noPast\n"},
	}},
	{"the record of a deleted timer has no name", []replacement{
		{"engine/policy/row.go", "		t.App, t.Name = end.Former.App, end.Former.Name\n", ""},
	}},
	{"ids are made again after the clock was set back", []replacement{
		{"engine/id.go", "if ms > m.ms || ms == m.ms && count > m.count {", "if ms > m.ms+1<<40 {"},
	}},
	{"a record of many dues counts too many", []replacement{
		{"engine/policy/misfire.go", "r.DueLast, r.Count = last, n\n", "r.DueLast, r.Count = last, n+n/2\n"},
	}},
	{"a start forgets that calls of a flow key may have been made", []replacement{
		{"engine/flow/gate.go", "g.opens = min(g.limit.Per, LongestStart)", "g.opens = 0"},
	}},
	{"a start forgets pauses", []replacement{
		{"engine/limit/book.go", "		rule.Started = started\n", "		rule.Started = started\n		if started {\n			rule.Paused = 0\n		}\n"},
	}},
	{"a burst is not bounded by its window", []replacement{
		{"engine/flow/bucket.go", "		at = b.window.next(at)\n", "		b.window.next(at)\n"},
	}},
	{forgetsOperation, []replacement{
		{"engine/change/bulk.go", "bulkFiles(e.cfg.OperationsDir)", `bulkFiles("")`},
	}},
	{leaseOfAnswer, []replacement{
		{"engine/cluster/member.go", "m.lease.Acknowledge(began)", "m.lease.Acknowledge(m.cfg.Boot())"},
	}},
	{evictsTheLiving, []replacement{
		{"tier/memory/members.go", "n.Pulse() != dead", "n.Life != dead.Life"},
	}},
	{outageIsSilence, []replacement{
		{"engine/cluster/watch.go", "	if now-w.last > w.times.Gap {\n		was = nil\n	}\n", ""},
	}},
	{takesWithoutFence, []replacement{
		{"tier/memory/members.go", "m.hold(s, n.Name, engine.Holding{Holder: life, Clean: h.Clean, Former: h.Former})", "m.holders[s], m.moves, m.cold.shards[s].Owner = engine.Holding{Holder: life, Clean: h.Clean, Former: h.Former}, m.moves+1, n.Name"},
	}},
	{onceByJournal, []replacement{
		{"engine/scheduler/executor.go", "	case once && e.life != nil:\n", "	case once && e.life != nil && false:\n"},
	}},
	{storesBeside, []replacement{
		{"engine/resident/intent.go", "		case t.settle > m.settled.Load():\n", "		case t.settle > m.settled.Load()+1:\n"},
	}},
	{passesIntents, []replacement{
		{"engine/resident/settle.go", " || t.intends && due > sh.watermark {", " {"},
	}},
	{alwaysClean, []replacement{
		{"engine/scheduler/gain.go", "if s.Clean {", "if s.Clean || true {"},
	}},
	{trustsWarm, []replacement{
		{"engine/scheduler/gain.go", "		m.gaps.add(g.of, e.memory.Loaded.Load(), max(m.filled.Load(), m.warmed.Load()))\n", ""},
	}},
	{mintsAnywhere, []replacement{
		{"engine/change/create.go", "e.IDs.Next(now, own)", "e.IDs.Next(now, engine.AllShards)"},
		{"engine/resident/change.go", "if sh.stay != here {", "if false {"},
	}},
	{cedesDuringChanges, []replacement{
		{"engine/resident/cede.go", "if len(sh.changing) > 0 {", "if false {"},
	}},
	{cedesBehind, []replacement{
		{"engine/resident/cede.go", "m.isStepping() || w < sh.lastBegun() && !forced", "m.isStepping()"},
	}},
	{cedesCalls, []replacement{
		{"engine/resident/cede.go", "			s.Owe[len(s.Owe)-1].NotBefore = now + t.timer.def.Callback.Timeout.Milliseconds() + stillRuns\n", ""},
	}},
	{keepsJournal, []replacement{
		{"engine/scheduler/cede.go", "return e.settler.forgetAll(ctx)", "return nil"},
	}},
	{checksNoLease, []replacement{
		{"engine/resident/attempt.go", "holds := m.cfg.Ownership.Holds() //", "holds := m.cfg.Ownership.Holds() || true //"},
	}},
	{settlesForOthers, []replacement{
		{"tier/mysql/settle.go", `" AND holder="`, `" AND 0<"`},
	}},
	{mirrorsTooSoon, []replacement{
		{"engine/cluster/mirrored.go", "// Finish notes an outcome.\n", `// Begin notes an outcome that nobody knows.
func (m *Mirrored) Begin(b engine.Begun) engine.Position {
	m.mu.Lock()
	t := engine.Task{Key: b.Key, Generation: b.Generation, Status: engine.Succeeded, Attempts: []engine.Attempt{{N: int(b.Attempt)}}}
	m.next.Tasks = append(m.next.Tasks, engine.EncodeTask(&t))
	m.rouse()
	m.mu.Unlock()
	return m.Journal.Begin(b)
}

`},
	}},
	{takesBack, []replacement{
		{"engine/cluster/shards.go", "r.Holder == life && r.Fence <= h.fence:", "r.Holder == life && r.Fence == 0:"},
	}},
	{believesLate, []replacement{
		{"engine/resident/learn.go", " || x.LastAttempt() != t.LastAttempt()+1:", ":"},
		{"engine/resident/learn.go", "t.state != Retrying || t.past != wasUnended || ", "t.state != Retrying || "},
	}},
}

const (
	forgetsOperation = "a start forgets an operation on many timers"
	looksOnce        = "a call is not looked at again before its first byte" // the simulator hangs

	// Of several nodes.
	leaseOfAnswer     = "a lease runs from the answer of a beat"
	evictsTheLiving   = "a life that has beaten is evicted"
	outageIsSilence   = "all are silent after an outage of the table"
	takesWithoutFence = "a shard is taken under its former fence"
	onceByJournal     = "a node notes at_most_once calls in its journal only"
	storesBeside      = "the begin of an at_most_once call is stored beside a settle that has its task"
	passesIntents     = "the watermark passes an at_most_once call whose begin is being stored"

	alwaysClean        = "the shards of a dead node are recovered as if it had given them"
	trustsWarm         = "the warm minutes of a gained shard are trusted"
	mintsAnywhere      = "a node creates timers in shards of other nodes"
	cedesDuringChanges = "a shard is given away while a timer is being changed"
	cedesBehind        = "a shard is given away before the watermark passes what began"
	cedesCalls         = "the heir of a shard calls at once what is still in a call"
	keepsJournal       = "the journal keeps records of shards that were given away"
	checksNoLease      = "a call does not look before its first byte whether its node may still call"
	settlesForOthers   = "a node settles for a shard that another has under the same fence"
	mirrorsTooSoon     = "the mirror has a result before the answer"
	takesBack          = "a node goes on with a shard that it gave when the database goes back"
	believesLate       = "the owner of a shard takes a result of an attempt that was followed by another"
)

// noticedBy has the test, a package and its name, that has to notice a mutation for which
// the simulator is too small.
var noticedBy = map[string][2]string{
	forgetsOperation: {"../../engine/scheduler", "TestBulkGoesOnAfterAKill"},
	looksOnce:        {"../../engine/scheduler", "TestChangeThatFailsBeforeTheFirstByte"},

	leaseOfAnswer:     {"../../engine/cluster", "TestLeaseOfLateAnswers"},
	evictsTheLiving:   {"../../tier/memory", "TestMembers"},
	outageIsSilence:   {"../../engine/cluster", "TestOutageBuriesNobody"},
	takesWithoutFence: {"../../tier/memory", "TestMembers"},
	onceByJournal:     {"../../engine/scheduler", "TestNodeThatDiesCallsOnce"},
	storesBeside:      {"../../engine/resident", "TestIntentOfATaskThatIsBeingSettled"},
	passesIntents:     {"../../engine/resident", "TestIntentBesideASettle"},

	alwaysClean:        {"../../engine/scheduler", "TestNodeTakesOver"},
	trustsWarm:         {"../../engine/scheduler", "TestGainFillsItsShards"},
	mintsAnywhere:      {"../../engine/scheduler", "TestChangeDuringHandOver"},
	cedesDuringChanges: {"../../engine/scheduler", "TestChangeDuringHandOver"},
	cedesBehind:        {"../../engine/resident", "TestCede"},
	cedesCalls:         {"../../engine/scheduler", "TestCallsDuringHandOver"},
	keepsJournal:       {"../../engine/scheduler", "TestJournalOfShardsThatLeft"},
	checksNoLease:      {"../../engine/scheduler", "TestTakenOverWhileStopped"},
	settlesForOthers:   {"../../tier/mysql", "TestHolder"},
	mirrorsTooSoon:     {"../../engine/scheduler", "TestMirrorSparesRepeats"},
	takesBack:          {"../../engine/cluster", "TestShardThatIsBack"},
	believesLate:       {"../../engine/resident", "TestLearn"},

	"a task of a key with an order does not wait for older rows": {"../../engine/scheduler", "TestOrderOfRowsAfterAStart"},
	"tasks that wait for each other go in any order":             {"../../engine/resident", "TestQueueGoesByDue"},
	"a row that changes its lane is not read again":              {"../../engine/scheduler", "TestRowThatChangesItsLane"},
	"a due of a range is taken while its timer is being changed": {"../../engine/scheduler", "TestDeleteAfterALongStepBack"},
}

// TestMutationsFit: each still finds what it replaces, also where not all are tried.
func TestMutationsFit(t *testing.T) {
	for i := range mutations {
		mutations[i].mutated(t)
	}
}

// TestMutationsAreListed: RELIABILITY.md names each, in this order, and what notices it.
func TestMutationsAreListed(t *testing.T) {
	page, err := os.ReadFile("../RELIABILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Bugs put in on purpose\n")
	section, _, _ = strings.Cut(section, "\n## ")
	if n := fmt.Sprintf("in %d ways", len(mutations)); !strings.Contains(section, n) {
		t.Errorf("the page does not say %q", n)
	}
	_, table, _ := strings.Cut(section, "\n|---")
	var listed, want []string
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| ") {
			listed = append(listed, strings.TrimPrefix(cells[0], "| ")+": "+cells[1])
		}
	}
	for i := range mutations {
		by := "TestSimulate"
		if other, is := noticedBy[mutations[i].name]; is {
			by = strings.TrimPrefix(other[0], "../../") + "." + other[1]
		}
		want = append(want, mutations[i].name+": `"+by+"`")
	}
	if !slices.Equal(listed, want) {
		t.Errorf("the page lists\n%s\nwant\n%s", strings.Join(listed, "\n"), strings.Join(want, "\n"))
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
	cmd.Env = append(os.Environ(), "XTIMER_MUTATED=1", fmt.Sprint("XTIMER_SEEDS=", seeds), "XTIMER_SETTINGS=8", "TMPDIR="+dir)
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
	tried := 1
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
			if by, other := noticedBy[mu.name]; other {
				failsWith(t, overlay, by[0], by[1])
				return
			}
			out, err := many(t, t.TempDir(), "^TestSimulate$", 300, overlay)
			if bug := regexp.MustCompile(`panic: (BUG: [^\n]*)`).FindSubmatch(out); err != nil && bug != nil {
				t.Logf("the program notices it itself: %s", bug[1])
				return
			}
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

// failsWith runs a test that has to fail with an overlay.
func failsWith(t *testing.T, overlay, pkg, test string) {
	t.Helper()
	mutant := filepath.Join(t.TempDir(), "mutant.test") // runs in its folder: rapid leaves files of what failed
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", mutant, pkg).CombinedOutput(); err != nil {
		t.Fatalf("cannot build the tests of %s: %v\n%s", pkg, err, tail(out))
	}
	cmd := exec.Command(mutant, "-test.run", "^"+test+"$")
	cmd.Dir = filepath.Dir(mutant)
	out, err := cmd.CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("--- FAIL: "+test+" ")) {
		t.Fatalf("%s does not notice it: %v\n%s", test, err, tail(out))
	}
	t.Logf("noticed by %s", test)
}

func tail(b []byte) []byte { return b[max(0, len(b)-2000):] }

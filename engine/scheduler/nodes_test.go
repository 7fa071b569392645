package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/cluster"
	"xtimer/tier/memory"
)

// node is a world's place among those that share a cold tier.
type node struct {
	*cluster.Config                   // of each life; the life's number is set at its start
	table           *memory.Members   // that all share
	life            atomic.Uint64     // of the process that runs
	cut             atomic.Bool       // the table does not answer
	glass           *glass            // the mirror; nil: there is none
	seen            engine.Membership // the last look that had the shards; guarded by mu
	*world
}

// lives numbers them; the first of node i is i+1.
const livesOfNode = 1000

// nodes makes n nodes of a world: the first is the world itself. Each holds a part of the
// shards when it starts for the first time: i of them lie in part i mod n.
func (w *world) nodes(n int) (ws []*world) { return w.nodesOf(n, n) }

// nodesOf is nodes, of which the first have the shards, and the others join them.
func (w *world) nodesOf(n, have int) (ws []*world) {
	table, began := memory.NewMembers(w.cold), time.Now()
	parts := make([]engine.Set, n)
	for i := range engine.Shards {
		parts[i%have] = parts[i%have].Union(engine.SetOf(i))
	}
	for i := range n {
		x := w
		if i > 0 {
			x = newWorld(w.t, w.cold)
		}
		row := engine.Node{Name: fmt.Sprint("node-", i), Life: uint64(i+1) * livesOfNode, Weight: 1, Journal: [16]byte{byte(i + 1)}, State: engine.Serving, Address: fmt.Sprint("address-", i), Speaks: engine.Speaks}
		x.config.Node = row.Name
		x.node = &node{table: table, world: x, Config: &cluster.Config{
			Node: row, Times: cluster.TimesOf(1800 * time.Millisecond),
			Boot: func() time.Duration { return time.Since(began) }, After: time.After, Wall: x.clock,
		}}
		ws = append(ws, x)
		if i >= have {
			continue
		}
		err := errors.Join(table.Join(context.Background(), row, engine.Pulse{}), table.Take(context.Background(), row.Life, parts[i]))
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return ws
}

// end ends all nodes but the first, whose bubble ends it.
func endNodes(ws []*world) {
	for _, w := range ws[1:] {
		if w.life != nil {
			w.kill()
		}
		w.all.Wait()
	}
}

// begin is the configuration of a life that begins.
func (n *node) begin(l *life) *cluster.Config {
	cfg := *n.Config
	n.life.Store(cfg.Node.Life)
	l.node = cfg.Node.Life
	n.Config.Node.Life++
	cfg.Members = &mortalMembers{n.table, n, l}
	if n.glass != nil {
		cfg.Mirror = &mortalMirror{n.glass, l}
	}
	return &cfg
}

// fenced refuses what a life writes that is over, as a tier does that the nodes share.
func (n *node) fenced(op string) error {
	if n == nil || op != "Settle" && op != "Apply" && op != "ApplyAll" {
		return nil
	}
	seen, err := n.table.Look(context.Background(), 0)
	if err == nil && !slices.ContainsFunc(seen.Nodes, func(r engine.Node) bool { return r.Life == n.life.Load() }) {
		err = engine.ErrFenced
	}
	return err
}

// calls fails unless a life that calls holds the shard: each shard has one caller.
func (n *node) calls(l *life, c *call) {
	if n == nil {
		return
	}
	seen, err := n.table.Look(context.Background(), n.seen.Moves)
	if err != nil {
		n.t.Error(err)
		return
	}
	if seen.Shards != nil {
		n.seen = seen
	}
	if h := n.seen.Shards[c.key.Timer.Shard()]; h.Holder != l.node || h.Fence != c.fence {
		n.t.Errorf("%s, due %s, was called at %s by life %d under fence %d, and life %d has the shard under fence %d",
			c.name, stamp(c.key.Due), stamp(c.at), l.node, c.fence, h.Holder, h.Fence)
	}
}

// startAll starts nodes, and waits until each has its part of the shards.
func startAll(ws []*world) {
	for _, n := range ws {
		n.start()
	}
	time.Sleep(1300 * time.Millisecond)
}

// owns is how many shards the node holds by the table.
func (n *node) owns() (shards int) { return n.has().Len() }

// has is these shards.
func (n *node) has() (of engine.Set) {
	seen, err := n.table.Look(context.Background(), 0)
	if err != nil {
		n.t.Fatal(err)
	}
	for i := range seen.Shards {
		if seen.Shards[i].Holder == n.life.Load() {
			of = of.Union(engine.SetOf(i))
		}
	}
	return of
}

// mortalMembers is the table as one life sees it.
type mortalMembers struct {
	*memory.Members
	n *node
	l *life
}

func (m *mortalMembers) do(ctx context.Context, f func() error) (err error) {
	if m.n.cut.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	if dead := m.l.do(func() { err = f() }); dead != nil {
		return dead
	}
	return err
}

func (m *mortalMembers) Join(ctx context.Context, n engine.Node, was engine.Pulse) error {
	return m.do(ctx, func() error { return m.Members.Join(ctx, n, was) })
}

func (m *mortalMembers) Beat(ctx context.Context, n engine.Node) error {
	return m.do(ctx, func() error { return m.Members.Beat(ctx, n) })
}

func (m *mortalMembers) Look(ctx context.Context, moves uint64) (seen engine.Membership, err error) {
	err = m.do(ctx, func() (err error) { seen, err = m.Members.Look(ctx, moves); return err })
	return seen, err
}

func (m *mortalMembers) Evict(ctx context.Context, life uint64, dead engine.Pulse) error {
	return m.do(ctx, func() error { return m.Members.Evict(ctx, life, dead) })
}

func (m *mortalMembers) Take(ctx context.Context, life uint64, shards engine.Set) error {
	return m.do(ctx, func() error { return m.Members.Take(ctx, life, shards) })
}

func (m *mortalMembers) Give(ctx context.Context, life uint64, shards []engine.Handover) error {
	return m.do(ctx, func() error { return m.Members.Give(ctx, life, shards) })
}

func (m *mortalMembers) Leave(ctx context.Context, life uint64) error {
	return m.do(ctx, func() error { return m.Members.Leave(ctx, life) })
}

// ofAll are the calls of a timer by all nodes, in order.
func ofAll(ws []*world, name string) (cs []call) {
	for _, w := range ws {
		cs = append(cs, w.of(name)...)
	}
	slices.SortStableFunc(cs, func(a, b call) int { return int(a.at - b.at) })
	return cs
}

// behaveAll scripts the receiver of all nodes for a timer.
func behaveAll(ws []*world, name string, r reply) {
	for _, w := range ws {
		w.behave(name, func(*call) reply { return r })
	}
}

// outage of a node, as a timer's calls are held against it.
type takenOver struct {
	killed  int64 // when it made its last call
	within  int64 // how late the dues since then may be called, at most
	unknown int64 // what was due for so long before may not have been settled
}

// called holds the calls of a timer by all nodes against its dues: each was called, none
// early; late ones are of the outage; no call has a lower fence than one before it; and what was called twice was in flight or not
// settled, and says so.
func (o takenOver) called(t *testing.T, ws []*world, name string, want []int64) (repeats int) {
	t.Helper()
	seen, fence := map[int64]int{}, uint64(1)
	for _, c := range ofAll(ws, name) {
		if c.fence < fence {
			t.Errorf("%s, due %s, was called under fence %d after one under fence %d", name, stamp(c.key.Due), c.fence, fence)
		}
		fence = c.fence
		late := c.at - c.key.Due
		again := seen[c.key.Due] > 0
		seen[c.key.Due]++
		of := c.key.Due > o.killed-o.unknown && c.key.Due <= o.killed+o.within
		switch {
		case late < 0:
			t.Errorf("%s, due %s, was called %d ms early", name, stamp(c.key.Due), -late)
		case late > 20 && !of, late > o.unknown+o.within:
			t.Errorf("%s, due %s, was called %d ms late", name, stamp(c.key.Due), late)
		case again && (!c.redelivered || !of):
			t.Errorf("%s, due %s, was called again at %s, redelivered %v", name, stamp(c.key.Due), stamp(c.at), c.redelivered)
		case c.redelivered && !of:
			t.Errorf("%s, due %s, is called a repeat at %s", name, stamp(c.key.Due), stamp(c.at))
		}
		if again {
			repeats++
		}
	}
	var got []int64
	for due := range seen {
		got = append(got, due)
	}
	slices.Sort(got)
	if diff := difference(got, want); diff != "" {
		t.Errorf("%s was called for %d dues, want %d: %s", name, len(got), len(want), diff)
	}
	return repeats
}

// One of two nodes is killed. The other takes its shards and calls all that is due: what was
// in flight or not settled again, marked so, and nothing early.
func TestNodeTakesOver(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		a.start()
		b.start()
		time.Sleep(1300 * time.Millisecond) // no call falls on a settle
		type made struct {
			name        string
			from, every int64
			id          engine.TimerID
		}
		var all []made
		for i := range 24 {
			x := made{name: fmt.Sprint("every-", i), every: []int64{1000, 5000, 7000, 45_000}[i%4]}
			d := timer(x.name, every(time.Duration(x.every)*time.Millisecond))
			if x.from = w.now(); x.every == 5000 {
				d.Schedule = cron("*/5 * * * * *")
			}
			x.id = ws[i%2].make(d)
			all = append(all, x)
		}
		shots := map[string]int64{}
		for i := range 40 { // some before, some in and some after the outage, in both minutes
			name := fmt.Sprint("shot-", i)
			due := w.now() + int64(i)*3000 + 1500
			ws[i%2].make(timer(name, at(due)))
			shots[name] = due
		}
		behaveAll(ws, "later", fail) // alone in its lane, and all that it has is a row of later
		d := timer("later", delay(40*time.Second), retry(2, 40*time.Second, 1))
		d.Callback.URL = "http://127.0.0.1:2/later"
		a.make(d)
		behaveAll(ws, "slow", slow(4*time.Second))
		slowFrom := w.now()
		slow := a.make(timer("slow", every(10*time.Second)))
		time.Sleep(62*time.Second + 37*time.Millisecond)
		o := takenOver{killed: w.now(), within: 3000, unknown: 2500}
		a.kill()
		time.Sleep(3 * time.Second)
		if n := b.node.owns(); n != engine.Shards {
			t.Errorf("the other owns %d shards after 3 s", n)
		}
		time.Sleep(87 * time.Second)
		to := w.now()
		repeats := 0
		for _, x := range all {
			if _, err := b.Disable(t.Context(), x.id, 0, "", 0); err != nil {
				t.Fatal(err)
			}
			phase := x.from
			if x.every == 5000 {
				phase = 0
			}
			repeats += o.called(t, ws, x.name, grid(x.from, to, x.every, phase))
		}
		if _, err := b.Disable(t.Context(), slow, 0, "", 0); err != nil {
			t.Fatal(err)
		}
		for name, due := range shots {
			repeats += o.called(t, ws, name, []int64{due})
		}
		if c := b.of("later"); len(a.of("later")) != 1 || len(c) != 1 || c[0].at > o.killed+40_000 || c[0].attempt != 2 {
			t.Errorf("the other made %d attempts of a task that the dead one was to try again: %+v", len(c), c)
		}
		o.unknown = 15_000 // a call that takes its time keeps the watermark back
		n := o.called(t, ws, "slow", grid(slowFrom, to, 10_000, slowFrom))
		t.Logf("%d repeats, and %d of the slow one", repeats, n)
		if repeats == 0 || n > 1 {
			t.Errorf("%d repeats, and %d of the slow one: the test tests nothing, or too much was called again", repeats, n)
		}
		for cause, some := range map[string]bool{"takeover": true, "start": false, "handover": false} {
			if n := b.metric(fmt.Sprintf("xtimer_redelivered_total{cause=%q}", cause)); n > 0 != some {
				t.Errorf("%v calls may have been made before because of a %s", n, cause)
			}
		}
		b.settle()
	})
}

// A node that does not reach the table calls nothing when its lease has run out, is taken
// over, and ends. Its next life waits for shards, and refuses what belongs to the other.
func TestNodeThatIsCutOff(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		a.start()
		b.start()
		time.Sleep(time.Second)
		from := w.now()
		var ids []engine.TimerID
		for i := range 10 {
			ids = append(ids, a.make(timer(fmt.Sprint("often-", i), cron("* * * * * *"))))
		}
		behaveAll(ws, "dials", reply{dial: 3 * time.Second})
		dials := a.make(timer("dials", at(from+30_500)))
		time.Sleep(30 * time.Second)
		a.node.cut.Store(true)
		o := takenOver{killed: w.now(), within: 4200, unknown: 2500}
		time.Sleep(10 * time.Second)
		a.node.cut.Store(false)
		if err := a.ended(); !errors.Is(err, engine.ErrFenced) {
			t.Errorf("it ended with %v", err)
		}
		time.Sleep(20 * time.Second)
		to := w.now()
		for _, id := range ids[1:] {
			if _, err := b.Delete(t.Context(), id, 0); err != nil {
				t.Fatal(err)
			}
		}
		a.start()
		last, first := int64(0), int64(engine.MaxDue)
		for i := range ids {
			for _, c := range a.of(fmt.Sprint("often-", i)) {
				last = max(last, c.at)
			}
			for _, c := range b.of(fmt.Sprint("often-", i)) {
				first = min(first, c.at)
			}
		}
		if last >= first || last > o.killed+1200 {
			t.Errorf("it called until %s, cut off at %s; the other called from %s", stamp(last), stamp(o.killed), stamp(first))
		}
		if c := b.of("dials"); len(a.of("dials")) != 0 || len(c) != 1 {
			t.Errorf("%d calls by the node that was cut off while it dialled, %d by the other", len(a.of("dials")), len(c))
		}
		if c := a.Create(t.Context(), timer("new", every(time.Second)), nil); !errors.Is(c.Err, engine.ErrElsewhere) {
			t.Errorf("a node without shards makes a timer: %v", c.Err)
		}
		for name, f := range map[string]func() error{
			"Timer":    func() error { _, err := a.Timer(t.Context(), ids[0]); return err },
			"Upcoming": func() error { _, err := a.Upcoming(t.Context(), ids[0], 1); return err },
			"Task":     func() error { _, err := a.Task(t.Context(), engine.Key{Timer: dials, Due: from + 30_500}); return err },
			"Delete":   func() error { _, err := a.Delete(t.Context(), ids[0], 0); return err },
			"RunNow":   func() error { _, err := a.RunNow(t.Context(), ids[0], 0); return err },
			"Put":      func() error { _, _, err := a.Put(t.Context(), timer("often-0", every(time.Hour)), 0); return err },
			"absent":   func() error { _, err := a.Timer(t.Context(), 1); return err },
		} {
			if err := f(); !errors.Is(err, engine.ErrElsewhere) {
				t.Errorf("%s of a timer of the other node: %v", name, err)
			}
		}
		if _, err := b.Delete(t.Context(), ids[0], 0); err != nil {
			t.Fatal(err)
		}
		for i := range ids {
			o.called(t, ws, fmt.Sprint("often-", i), grid(from, to, 1000, 0))
		}
		b.settle()
	})
}

// A node that is started again before the others bury it keeps its shards, and has its
// journal: only what was in flight is called again, and never an at_most_once task.
func TestNodeComesBack(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{2, 1} {
		for _, outage := range []bool{false, true} {
			t.Run(fmt.Sprint(nodes, " nodes, outage ", outage), func(t *testing.T) {
				bubble(t, func(t *testing.T, w *world) { comesBack(t, w, nodes, outage) })
			})
		}
	}
}

// comesBack: the cold tier may be away when the node gains its shards, so that it has to try
// that several times.
func comesBack(t *testing.T, w *world, nodes int, outage bool) {
	ws := w.nodes(nodes)
	defer endNodes(ws)
	away := w.outage("Settle")
	startAll(ws)
	from := w.now()
	behaveAll(ws, "once", slow(3*time.Second))
	behaveAll(ws, "flies", slow(3*time.Second))
	once := w.make(timer("once", at(from+19_000), atMostOnce))
	w.make(timer("flies", at(from+19_000)))
	id := w.make(timer("often", every(time.Second), misfire(engine.MisfireAll, time.Hour)))
	time.Sleep(20*time.Second + 100*time.Millisecond)
	o := takenOver{killed: w.now(), within: 2000, unknown: 2500}
	away.Store(outage)
	w.crash(300 * time.Millisecond)
	time.Sleep(2 * time.Second)
	if n := w.node.owns(); n != engine.Shards/nodes {
		t.Errorf("it owns %d shards", n)
	}
	if outage {
		time.Sleep(5 * time.Second)
		away.Store(false)
		o.within = 9000
	}
	time.Sleep(70 * time.Second)
	if _, err := w.Delete(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	if n := o.called(t, ws, "often", grid(from, w.now(), 1000, from)); n > 0 {
		t.Errorf("%d results of the journal were called again", n)
	}
	if n := o.called(t, ws, "flies", []int64{from + 19_000}); n != 1 {
		t.Errorf("the call in flight was made %d times again", n)
	}
	w.settle()
	if rec := w.records(once)[0]; len(w.of("once")) != 1 || rec.Status != engine.Unknown {
		t.Errorf("at_most_once was called %d times, and is %v", len(w.of("once")), rec.Status)
	}
	if n := w.journal.length(); n > 0 {
		t.Errorf("the journal has %d records", n)
	}
}

// A gain that fails at any of its steps goes on from there when the cold tier is back, and
// the timers of the node's own shards are on time meanwhile.
func TestGainIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"Settle", "Due", "Due of the load", "Owed", "OwedIn", "Load"} {
		t.Run(op, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				ws := w.nodes(2)
				defer endNodes(ws)
				a, b := ws[0], ws[1]
				a.start()
				away := b.outage(op)
				if op == "Due of the load" { // the recovery reads dues up to now
					b.before.set(func(op string, arg any) error {
						if span, ok := arg.([2]int64); ok && op == "Due" && away.Load() && span[0] <= b.now() && span[1] > b.now() {
							return engine.ErrUnavailable
						}
						return nil
					})
				}
				b.start()
				time.Sleep(1300 * time.Millisecond)
				from := w.now()
				behaveAll(ws, "fails", fail)
				fails := a.make(timer("fails", every(20*time.Second), retry(9, 2*time.Second, 1)))
				ids := []engine.TimerID{fails}
				for i := range 8 {
					ids = append(ids, ws[i%2].make(timer(fmt.Sprint("often-", i), every(time.Second), misfire(engine.MisfireAll, time.Hour))))
				}
				time.Sleep(42*time.Second + 37*time.Millisecond)
				o := takenOver{killed: w.now(), within: 16_000, unknown: 2500}
				a.kill()
				away.Store(true)
				time.Sleep(13 * time.Second) // a watermark that moves is written within 10 s
				away.Store(false)
				time.Sleep(40 * time.Second)
				to := w.now()
				for _, id := range ids {
					if _, err := b.Disable(t.Context(), id, 0, "", 0); err != nil {
						t.Fatal(err)
					}
				}
				for i := range 8 {
					p := o
					if i%2 == 1 && op != "OwedIn" { // else the lane of all of them is not read
						p = takenOver{unknown: 20}
					}
					p.called(t, ws, fmt.Sprint("often-", i), grid(from, to, 1000, from))
				}
				if n := len(ofAll(ws, "fails")); n < 22 {
					t.Errorf("%d attempts of the timer that fails", n)
				}
				b.settle()
			})
		})
	}
}

// What a killed node may have called of at_most_once tasks is not called again by the node
// that takes over: those tasks end as unknown. What it had not begun is called.
func TestNodeThatDiesCallsOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		a.start()
		b.start()
		behaveAll(ws, "slow", slow(3*time.Second))
		time.Sleep(time.Second)
		ids := map[string]engine.TimerID{"slow": a.make(timer("slow", every(700*time.Millisecond), atMostOnce, misfire(engine.MisfireAll, time.Hour)))}
		for i := range 6 {
			name := fmt.Sprint("once-", i)
			ids[name] = a.make(timer(name, every(time.Duration(70+i)*time.Millisecond), atMostOnce, misfire(engine.MisfireAll, time.Hour)))
		}
		time.Sleep(7*time.Second + 33*time.Millisecond)
		a.kill()
		time.Sleep(20 * time.Second)
		unknown, after := 0, 0
		for name, id := range ids {
			if _, err := b.Disable(t.Context(), id, 0, "", 0); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			b.settle()
			ends := map[int64]engine.TaskStatus{}
			for _, r := range b.records(id) {
				ends[r.Key.Due] = r.Status
			}
			calls := map[int64]int{}
			for _, c := range ofAll(ws, name) {
				if calls[c.key.Due]++; calls[c.key.Due] > 1 {
					t.Errorf("%s, due %s, was called again", name, stamp(c.key.Due))
				}
			}
			after += len(b.of(name))
			for due, end := range ends {
				switch end {
				case engine.Unknown:
					unknown++
				case engine.Succeeded:
					if calls[due] != 1 {
						t.Errorf("%s, due %s, ended as %v after %d calls", name, stamp(due), end, calls[due])
					}
				default:
					t.Errorf("%s, due %s, ended as %v", name, stamp(due), end)
				}
			}
			for due := range calls {
				if ends[due] == 0 && due < w.now()-30_000 {
					t.Errorf("%s, due %s, was called and has no record", name, stamp(due))
				}
			}
		}
		if unknown == 0 || after == 0 {
			t.Errorf("%d are unknown, and the other node called %d: the test tests nothing", unknown, after)
		}
	})
}

// Of several nodes the owner of shard 0 sweeps the cold tier, and who takes the shard over
// goes on with that.
func TestNodeSweeps(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		var sweeps [2]atomic.Int64
		for i, n := range ws {
			n.before.set(func(op string, _ any) error {
				if op == "Sweep" {
					sweeps[i].Add(1)
				}
				return nil
			})
			n.start()
		}
		time.Sleep(time.Minute)
		if a, b := sweeps[0].Load(), sweeps[1].Load(); a < 5 || b != 0 {
			t.Errorf("the owner of shard 0 swept %d times in a minute, the other node %d", a, b)
		}
		ws[0].kill()
		time.Sleep(time.Minute)
		if b := sweeps[1].Load(); b < 5 {
			t.Errorf("who took shard 0 over swept %d times in a minute", b)
		}
	})
}

// A node whose clock is 5 s behind takes the shards of a node that died during a call of an
// at_most_once timer: the due lies ahead for it, and is not called again.
func TestGainByAClockThatIsBehind(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		startAll(ws)
		behaveAll(ws, "once", slow(3*time.Second))
		from := a.now()
		id := a.make(timer("once", at(from+10_000), atMostOnce))
		often := a.make(timer("often", every(time.Second), atMostOnce, misfire(engine.MisfireAll, time.Hour)))
		time.Sleep(9 * time.Second)
		b.step(-5 * time.Second)
		time.Sleep(1500 * time.Millisecond)
		a.kill()
		time.Sleep(30 * time.Second)
		b.settle()
		if n := len(ofAll(ws, "once")); n != 1 {
			t.Errorf("the call was made %d times", n)
		}
		if r := b.record(engine.Key{Timer: id, Due: from + 10_000}); r == nil || r.Status != engine.Unknown {
			t.Errorf("its record is %+v", r)
		}
		b.accounted(often, from, from+20_000, 1000)
		seen := map[int64]int{}
		for _, c := range ofAll(ws, "often") {
			if seen[c.key.Due]++; seen[c.key.Due] > 1 {
				t.Errorf("due %d was called again", c.key.Due)
			}
		}
	})
}

// A node hears within some seconds that nothing which it writes is stored any more, also where what it
// cannot store is a decision, for which all watermarks wait.
func TestNodeThatIsFencedWhileItDecides(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting, w.config.MaxCalls, w.config.MaxCallsPerTarget, w.config.MaxCallsPerApp = 4, 1, 1, 1
		ws := w.nodes(1)
		defer endNodes(ws)
		w.start()
		time.Sleep(time.Second)
		var gone atomic.Bool
		w.before.set(func(op string, arg any) error {
			if s, ok := arg.(*engine.Settlement); ok && len(s.Marks) == 0 && len(s.Tasks) == 0 && len(s.Owe) > 0 {
				gone.Store(true) // MySQL has gone back
			}
			if op == "Settle" && gone.Load() {
				return engine.ErrFenced
			}
			return nil
		})
		w.behave("a", func(*call) reply { return slow(time.Minute) })
		w.make(timer("a", every(100*time.Millisecond), timeout(2*time.Minute)))
		for !gone.Load() {
			time.Sleep(100 * time.Millisecond)
		}
		fenced := w.now()
		for len(w.life.end) == 0 && w.now()-fenced < 20_000 {
			time.Sleep(100 * time.Millisecond)
		}
		if len(w.life.end) == 0 {
			t.Fatal("it goes on")
		}
		if err := w.ended(); !errors.Is(err, engine.ErrFenced) {
			t.Errorf("it ended with %v", err)
		}
		if took := w.now() - fenced; took > 4000 {
			t.Errorf("it ended %d ms after that", took)
		}
	})
}

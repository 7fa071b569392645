package scheduler_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/scheduler"
)

// handedOver holds the calls of a timer by all nodes against its dues: each was called once,
// not early, within a second and without a mark.
func handedOver(t *testing.T, ws []*world, name string, want []int64) {
	t.Helper()
	var got []int64
	for _, c := range ofAll(ws, name) {
		switch late := c.at - c.key.Due; {
		case late < 0 || late > 1000:
			t.Errorf("%s, due %s, was called %d ms late", name, stamp(c.key.Due), late)
		case c.redelivered || c.attempt != 1:
			t.Errorf("%s, due %s, was called at %s: attempt %d, redelivered %v", name, stamp(c.key.Due), stamp(c.at), c.attempt, c.redelivered)
		}
		got = append(got, c.key.Due)
	}
	slices.Sort(got)
	if diff := difference(got, want); diff != "" {
		t.Errorf("%s was called for %d dues, want %d: %s", name, len(got), len(want), diff)
	}
}

// made is a timer of a test.
type made struct {
	name        string
	from, every int64
	id          engine.TimerID
}

// makeMany makes timers of several periods.
func makeMany(ws []*world, n int) (all []made) {
	for i := range n {
		x := made{name: fmt.Sprint("every-", i), every: []int64{300, 1000, 7000, 45_000}[i%4]}
		w := ws[i%len(ws)]
		x.from = w.now()
		x.id = w.make(timer(x.name, every(time.Duration(x.every)*time.Millisecond)))
		all = append(all, x)
	}
	return all
}

// onOwner does something on the node that owns a timer.
func onOwner(t *testing.T, ws []*world, f func(n *world) error) (owner *world) {
	t.Helper()
	for until := time.Now().Add(4 * time.Second); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		for _, n := range ws {
			if n.life == nil {
				continue
			}
			if err := f(n); err == nil {
				return n
			} else if !errors.Is(err, engine.ErrElsewhere) {
				t.Fatalf("%s: %v", n.config.Node, err)
			}
		}
	}
	t.Fatal("no node owns a timer")
	return nil
}

// A second node joins the first and gets half of the shards. Nothing is called twice, late or
// with a mark: not what is due, nor the retries, nor what waits for its turn.
func TestNodeJoins(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodesOf(2, 1)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		a.start()
		time.Sleep(1300 * time.Millisecond)
		all := makeMany(ws[:1], 80)
		shots := map[string]int64{}
		for i := range 400 {
			name := fmt.Sprint("shot-", i)
			shots[name] = w.now() + int64(i)*50 + 9_025
			if i%4 == 0 { // in a minute that is loaded later
				shots[name] += 120_000
			}
			a.make(timer(name, at(shots[name])))
		}
		tries := map[string]engine.TimerID{}
		for i := range 40 { // a row of each tells of its attempts
			name := fmt.Sprint("tries-", i)
			for _, n := range ws {
				n.behave(name, func(c *call) reply {
					if c.attempt < 4 {
						return fail
					}
					return ok
				})
			}
			tries[name] = a.make(timer(name, delay(9*time.Second+time.Duration(i)*77*time.Millisecond), retry(9, 3*time.Second, 1)))
		}
		time.Sleep(12 * time.Second)
		b.start()
		time.Sleep(8 * time.Second)
		if n, m := a.node.owns(), b.node.owns(); n != 128 || m != 128 {
			t.Errorf("they own %d and %d shards", n, m)
		}
		time.Sleep(30 * time.Second)
		to := w.now()
		byB := 0
		for _, x := range all {
			if onOwner(t, ws, func(n *world) error {
				_, err := n.Disable(t.Context(), x.id, 0, "", 0)
				return err
			}) == b {
				byB++
			}
			handedOver(t, ws, x.name, grid(x.from, to, x.every, x.from))
		}
		if byB < len(all)/4 {
			t.Errorf("%d of %d timers are the second node's", byB, len(all))
		}
		time.Sleep(110 * time.Second)
		for name, due := range shots {
			handedOver(t, ws, name, []int64{due})
		}
		for name := range tries {
			var attempts []int
			for _, c := range ofAll(ws, name) {
				attempts = append(attempts, c.attempt)
				if c.redelivered {
					t.Errorf("attempt %d of %s is called a repeat", c.attempt, name)
				}
			}
			if !slices.Equal(attempts, []int{1, 2, 3, 4}) {
				t.Errorf("attempts %v of %s", attempts, name)
			}
		}
		w.settle()
		if n := a.journal.length() + b.journal.length(); n > 0 {
			t.Errorf("the journals have %d records", n)
		}
	})
}

// A call that takes its time keeps the journal from forgetting. All the same it has nothing
// of a shard that has left: when the shard comes back, and the node dies, what it has would be
// taken for the last that is known.
func TestJournalOfShardsThatLeft(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodesOf(2, 1)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		a.start()
		time.Sleep(1300 * time.Millisecond)
		for i := range 8 {
			name := fmt.Sprint("slow-", i)
			behaveAll(ws, name, slow(14*time.Second))
			a.make(timer(name, delay(time.Second), timeout(30*time.Second)))
		}
		makeMany(ws[:1], 80)
		time.Sleep(3 * time.Second)
		b.start()
		time.Sleep(6 * time.Second)
		if n := b.node.owns(); n != engine.Shards/2 {
			t.Fatalf("the second node owns %d shards", n)
		}
		seen, err := a.node.table.Look(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		mine, others := 0, 0
		a.journal.mu.Lock()
		defer a.journal.mu.Unlock()
		for _, r := range a.journal.records {
			var k engine.Key
			switch r := r.(type) {
			case engine.Begun:
				k = r.Key
			case []byte:
				task, err := engine.DecodeTask(bytes.Clone(r))
				if err != nil {
					t.Fatal(err)
				}
				k = task.Key
			}
			if seen.Shards[k.Timer.Shard()].Holder == a.node.life.Load() {
				mine++
			} else {
				others++
			}
		}
		if mine == 0 || others > 0 {
			t.Errorf("the journal has %d records of the node's shards, and %d of the other's", mine, others)
		}
	})
}

// A node that is stopped gives all its shards to the other, and joins again. Nothing is
// called twice, late or with a mark. A node that is alone ends at once.
func TestNodeDrains(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		startAll(ws)
		all := makeMany(ws, 90)
		time.Sleep(20*time.Second + 37*time.Millisecond)
		for range 3 {
			if err := a.stop(); err != nil {
				t.Errorf("it ended with %v", err)
			}
			time.Sleep(500 * time.Millisecond)
			if n := b.node.owns(); n != engine.Shards {
				t.Errorf("the other owns %d shards", n)
			}
			if n := a.journal.length(); n > 0 {
				t.Errorf("its journal has %d records", n)
			}
			time.Sleep(5 * time.Second)
			a.start()
			time.Sleep(15 * time.Second)
			if n := a.node.owns(); n != engine.Shards/2 {
				t.Errorf("it owns %d shards when it has joined again", n)
			}
		}
		to := w.now()
		for _, x := range all {
			onOwner(t, ws, func(n *world) error {
				_, err := n.Disable(t.Context(), x.id, 0, "", 0)
				return err
			})
			handedOver(t, ws, x.name, grid(x.from, to, x.every, x.from))
		}
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		began := time.Now()
		if err := a.stop(); err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > 50*time.Millisecond {
			t.Errorf("the last one ends after %v", d)
		}
	})
}

// A node whose shards cannot leave it, and whose targets do not answer, ends when the drain
// time is over: the hand-over and the calls have one such time, and not one each.
func TestNodeDrainsInTime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a := ws[0]
		startAll(ws)
		for i := range 8 {
			name := fmt.Sprint("mute-", i)
			behaveAll(ws, name, slow(2*time.Minute))
			d := timer(name, every(20*time.Second))
			d.Callback.Timeout = 2 * time.Minute
			a.make(d)
		}
		time.Sleep(30 * time.Second)
		a.before.set(func(op string, _ any) error {
			if op == "Apply" { // its shard cannot leave before it is made
				time.Sleep(40 * time.Second)
			}
			return nil
		})
		var made sync.WaitGroup
		made.Go(func() { a.Create(t.Context(), timer("slow", every(time.Hour)), nil) })
		time.Sleep(time.Second)
		began := time.Now()
		if err := a.stop(); err != nil {
			t.Errorf("it ended with %v", err)
		}
		if d := time.Since(began); d < 29*time.Second || d > 45*time.Second {
			t.Errorf("it ended after %v", d)
		}
		made.Wait()
	})
}

// Timers are created, changed and deleted while their shards are handed over, by commits
// that take their time. What is acknowledged is in force on all nodes; what is refused has
// changed nothing, and the other node does it.
func TestChangeDuringHandOver(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodesOf(2, 1)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		for _, n := range ws {
			n.before.set(func(op string, _ any) error {
				if op == "Apply" {
					time.Sleep(130 * time.Millisecond)
				}
				return nil
			})
		}
		a.start()
		time.Sleep(1300 * time.Millisecond)
		type changed struct {
			made
			at   int64 // when the answer was there
			by   *world
			gone bool // deleted, else replaced
		}
		var all []*changed
		for i := range 240 {
			x := &changed{gone: i%2 == 0}
			x.name, x.from = fmt.Sprint("often-", i), w.now()
			x.id = a.make(timer(x.name, cron("* * * * * *")))
			all = append(all, x)
		}
		time.Sleep(3 * time.Second)
		var work sync.WaitGroup
		var refused atomic.Int64
		for i, x := range all {
			work.Go(func() {
				time.Sleep(time.Duration(i) * 17 * time.Millisecond)
				elsewhere := false
				x.by = onOwner(t, ws, func(n *world) (err error) {
					if x.gone {
						_, err = n.Delete(t.Context(), x.id, 0)
					} else {
						_, err = n.Replace(t.Context(), x.id, 0, func(d engine.Definition) (engine.Definition, error) {
							d.Schedule, d.Callback.URL = cron("*/10 * * * * *"), "http://127.0.0.1:1/new"
							return d, nil
						})
					}
					elsewhere = elsewhere || err != nil
					return err
				})
				if x.at = w.now(); elsewhere {
					refused.Add(1)
				}
			})
		}
		born := make([]made, 60)
		for i := range born {
			work.Go(func() {
				time.Sleep(time.Duration(i) * 67 * time.Millisecond)
				x := &born[i]
				*x = made{name: fmt.Sprint("born-", i), every: 1000, from: w.now()}
				if c := a.Create(t.Context(), timer(x.name, every(time.Second)), nil); c.Err != nil {
					t.Errorf("%s is not made: %v", x.name, c.Err)
				} else {
					x.id = c.View.ID
				}
			})
		}
		b.start()
		work.Wait()
		time.Sleep(20 * time.Second)
		to := w.now()
		byB := 0
		for _, x := range all {
			if x.by == b {
				byB++
			}
			renewed := 0
			for _, c := range ofAll(ws, x.name) {
				isNew := c.url == "http://127.0.0.1:1/new"
				if c.at > x.at && !(isNew && !x.gone) {
					t.Errorf("%s, due %s, was called at %s as it was before, and changed at %s", x.name, stamp(c.key.Due), stamp(c.at), stamp(x.at))
				}
				if isNew {
					renewed++
				}
			}
			if !x.gone && renewed == 0 {
				t.Errorf("%s is not called as it was changed at %s", x.name, stamp(x.at))
			}
		}
		for _, x := range born {
			handedOver(t, ws, x.name, grid(x.from, to, x.every, x.from))
		}
		if byB < 20 || refused.Load() < 20 {
			t.Errorf("%d changes by the second node, %d refused at first: the test tests nothing", byB, refused.Load())
		}
	})
}

// Calls that take their time are under way when a node is stopped. Those that end within the
// patience of a hand-over are not repeated. Each other one is repeated once by the heir, when
// the call has surely ended, with a mark; with at_most_once it is not repeated. Until then no
// other call of a timer that does not overlap begins.
func TestCallsDuringHandOver(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		startAll(ws)
		from := w.now()
		due := from + 10_000
		ids := map[string]engine.TimerID{}
		for name, opts := range map[string][]func(*engine.Definition){
			"short": nil, "long": nil, "once": {atMostOnce}, "alone": {overlap(engine.OverlapQueue)},
		} {
			d := timer(name, at(due), append(opts, timeout(8*time.Second))...)
			first := true
			takes := 7 * time.Second
			switch name {
			case "short":
				takes = 390 * time.Millisecond
			case "alone":
				d.Schedule = every(10 * time.Second)
			}
			for _, n := range ws {
				n.behave(name, func(*call) reply {
					if !first {
						return ok
					}
					first = false
					return slow(takes)
				})
			}
			ids[name] = a.make(d)
		}
		time.Sleep(10*time.Second + 100*time.Millisecond)
		if err := a.stop(); err != nil {
			t.Error(err)
		}
		time.Sleep(25 * time.Second)
		for name, want := range map[string]int{"short": 1, "long": 2, "once": 1} {
			cs := ofAll(ws, name)
			if len(cs) != want {
				t.Errorf("%s was called %d times", name, len(cs))
			}
			if len(cs) == 2 && (!cs[1].redelivered || cs[1].at < due+8000 || cs[1].at > due+13_000) {
				t.Errorf("%s was called again at %s, redelivered %v", name, stamp(cs[1].at), cs[1].redelivered)
			}
		}
		var last int64
		for i, c := range ofAll(ws, "alone") {
			if c.at < last || c.redelivered != (i == 1) {
				t.Errorf("alone, due %s, was called at %s, redelivered %v; the call before ended at %s", stamp(c.key.Due), stamp(c.at), c.redelivered, stamp(last))
			}
			last = c.ended
		}
		if rec := w.records(ids["once"])[0]; rec.Status != engine.Unknown {
			t.Errorf("at_most_once is %v", rec.Status)
		}
		if n := b.metric(`xtimer_redelivered_total{cause="handover"}`); n != 2 {
			t.Errorf("%v calls may have been made before because of a handover", n)
		}
		if _, err := b.Delete(t.Context(), ids["alone"], 0); err != nil {
			t.Error(err)
		}
		w.settle()
	})
}

// tellEachOther has nodes tell each other what became of calls.
func tellEachOther(ws []*world) {
	var now sync.Map // the schedulers that run, by the addresses of their nodes
	for _, x := range ws {
		x.tune = func(e *scheduler.Scheduler) {
			now.Store(x.node.Node.Address, e)
			e.TellBy(func(ctx context.Context, address string, message []byte) ([]byte, error) {
				if o, ok := now.Load(address); ok {
					return o.(*scheduler.Scheduler).Learn(ctx, message)
				}
				return nil, errors.New("the node does not answer")
			})
		}
	}
}

// Calls are under way when their shards are given away. The node that makes them tells the next
// owner what became of them: none is made again, a failed one is followed by the next attempt
// after its backoff, and what waits for a task of its timer goes on when its call has ended.
func TestResultsOfAHandOver(t *testing.T) {
	for _, lasts := range []time.Duration{4 * time.Second, 3 * time.Minute} { // by then the row is in memory, or not
		t.Run(lasts.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				ws := w.nodes(2)
				defer endNodes(ws)
				a, b := ws[0], ws[1]
				a.config.Drain = 10 * time.Minute
				tellEachOther(ws)
				startAll(ws)
				due := w.now() + 10_000
				first := map[string]reply{"succeeds": slow(lasts), "fails": {class: engine.ClassRetry, code: 500, after: lasts}, "queue": slow(lasts), "once": slow(lasts)}
				ids := map[string]engine.TimerID{}
				for name, answer := range first {
					d := timer(name, at(due), timeout(lasts+time.Minute), retry(3, 2*time.Second, 1))
					if name == "queue" {
						d = timer(name, every(10*time.Second), timeout(lasts+time.Minute), overlap(engine.OverlapQueue))
					}
					if name == "once" {
						atMostOnce(&d)
					}
					isFirst := true
					for _, n := range ws {
						n.behave(name, func(*call) reply {
							if !isFirst {
								return ok
							}
							isFirst = false
							return answer
						})
					}
					ids[name] = a.make(d)
				}
				time.Sleep(10*time.Second + 100*time.Millisecond)
				if err := a.stop(); err != nil {
					t.Error(err)
				}
				time.Sleep(15 * time.Second)
				ended := due + lasts.Milliseconds()
				for name, want := range map[string]int{"succeeds": 1, "fails": 2, "once": 1} {
					cs := ofAll(ws, name)
					if len(cs) != want {
						t.Fatalf("%s was called %d times", name, len(cs))
					}
					if last := cs[want-1]; last.redelivered || last.attempt != want || want == 2 && (last.at < ended+2000 || last.at > ended+3000) {
						t.Errorf("%s: attempt %d at %s, redelivered %v; the call before ended at %s", name, last.attempt, stamp(last.at), last.redelivered, stamp(ended))
					}
				}
				for i, c := range ofAll(ws, "queue")[:2] {
					if from := max(ended, c.key.Due); c.redelivered || i == 1 && (c.at < from || c.at > from+1000) {
						t.Errorf("queue, due %s, was called at %s, redelivered %v; the call before ended at %s", stamp(c.key.Due), stamp(c.at), c.redelivered, stamp(ended))
					}
				}
				w.settle()
				for name, want := range map[string]int{"succeeds": 1, "fails": 2, "once": 1} {
					if rec := w.records(ids[name])[0]; rec.Status != engine.Succeeded || len(rec.Attempts) != want {
						t.Errorf("%s is %v after %d attempts", name, rec.Status, len(rec.Attempts))
					}
				}
				if _, err := b.Delete(t.Context(), ids["queue"], 0); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A call that may be made at most once is under way when its shard is given away, and the node that makes it dies. The
// heir waits for the result until the call must have ended; a change before that ends the task as well. It may have
// been called, and is not called again.
func TestCallAtMostOnceOfAHandOver(t *testing.T) {
	for _, c := range []struct {
		how    string
		change func(t *testing.T, b *world, id engine.TimerID) error
	}{
		{"nothing", func(*testing.T, *world, engine.TimerID) error { return nil }},
		{"delete", func(t *testing.T, b *world, id engine.TimerID) error {
			_, err := b.Delete(t.Context(), id, 0)
			return err
		}},
		{"crash", func(t *testing.T, b *world, id engine.TimerID) error { b.crash(0); return nil }},
		{"another delivery", func(t *testing.T, b *world, id engine.TimerID) error {
			_, err := b.Replace(t.Context(), id, 0, func(d engine.Definition) (engine.Definition, error) {
				d.Delivery = engine.AtLeastOnce
				return d, nil
			})
			return err
		}},
		{"crash and delete", func(t *testing.T, b *world, id engine.TimerID) error {
			b.kill()
			b.start()
			time.Sleep(time.Second)
			_, err := b.Delete(t.Context(), id, 0)
			return err
		}},
	} {
		t.Run(c.how, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				ws := w.nodes(2)
				defer endNodes(ws)
				a, b := ws[0], ws[1]
				a.config.Drain = 2 * time.Second
				startAll(ws)
				due := w.now() + 10_000
				for _, n := range ws {
					n.behave("once", func(*call) reply { return slow(15 * time.Second) })
				}
				id := a.make(timer("once", at(due), timeout(20*time.Second), atMostOnce))
				time.Sleep(10*time.Second + 100*time.Millisecond)
				if err := a.stop(); err != nil {
					t.Error(err)
				}
				time.Sleep(3 * time.Second)
				if err := c.change(t, b, id); err != nil {
					t.Fatal(err)
				}
				time.Sleep(40 * time.Second)
				w.settle()
				if n := len(ofAll(ws, "once")); n != 1 {
					t.Errorf("%d calls", n)
				}
				if rec := w.records(id)[0]; rec.Status != engine.Unknown || rec.Reason != engine.ReasonMayHaveBeen || len(rec.Attempts) != 1 {
					t.Errorf("%v, %s after %d attempts", rec.Status, rec.Reason, len(rec.Attempts))
				}
			})
		})
	}
}

// A call that is followed by another attempt ends while the rows of the shards that are given are being stored. Its
// end is stored before the gift, and the heir makes the next attempt.
func TestCallThatFailsDuringTheLastSettle(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a := ws[0]
		startAll(ws)
		fails := reply{class: engine.ClassRetry, code: 500, after: time.Second}
		due, ids := w.now()+10_000, map[string]engine.TimerID{}
		for i := range 100 { // some of them are in the shards that are given first
			name := fmt.Sprint("x-", i)
			for _, n := range ws {
				n.behave(name, func(c *call) reply {
					if c.attempt == 1 {
						return fails
					}
					return ok
				})
			}
			ids[name] = a.make(timer(name, at(due), timeout(2*time.Second), retry(3, 20*time.Second, 1)))
		}
		time.Sleep(10*time.Second + 100*time.Millisecond)
		a.slowly("Settle", 2*time.Second)
		if err := a.stop(); err != nil {
			t.Error(err)
		}
		time.Sleep(40 * time.Second)
		for name, id := range ids {
			cs := ofAll(ws, name)
			if len(cs) != 2 || cs[1].attempt != 2 {
				t.Errorf("%d calls of %s; the last is attempt %d", len(cs), name, cs[len(cs)-1].attempt)
			}
			if rec := w.records(id)[0]; rec.Status != engine.Succeeded || len(rec.Attempts) != 2 {
				t.Errorf("%s is %v after %d attempts", name, rec.Status, len(rec.Attempts))
			}
		}
	})
}

// Calls end all the time while the rows of the shards that are given are being stored, and while the ends of others
// are, for the last time, too. Their ends are told to the next owner: none is called again.
func TestCallsThatEndAfterTheLastSettle(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a := ws[0]
		a.config.Drain = 10 * time.Minute
		tellEachOther(ws)
		startAll(ws)
		due, ids := w.now()+10_000, map[string]engine.TimerID{}
		for i := range 1000 { // one ends each ms, from the gift of the first shards on
			name := fmt.Sprint("x-", i)
			lasts := slow(time.Duration(1100+i) * time.Millisecond)
			if i%2 == 0 {
				lasts.class, lasts.code = engine.ClassRetry, 500
			}
			for _, n := range ws {
				n.behave(name, func(c *call) reply {
					if c.attempt > 1 {
						return ok
					}
					return lasts
				})
			}
			ids[name] = a.make(timer(name, at(due), timeout(20*time.Second), retry(3, 5*time.Second, 1), to(1000+i)))
		}
		time.Sleep(11*time.Second + 100*time.Millisecond)
		a.slowly("Settle", 30*time.Millisecond)
		if err := a.stop(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		for i := range len(ids) {
			name, want := fmt.Sprint("x-", i), 1+(i+1)%2
			cs, rec := ofAll(ws, name), w.records(ids[fmt.Sprint("x-", i)])
			if len(cs) != want || cs[want-1].attempt != want || cs[want-1].redelivered {
				t.Errorf("%s was called %d times; the last is attempt %d, redelivered %v", name, len(cs), cs[len(cs)-1].attempt, cs[len(cs)-1].redelivered)
			}
			if len(rec) != 1 || rec[0].Status != engine.Succeeded || len(rec[0].Attempts) != want {
				t.Errorf("%s has %d records; the last is %v after %d attempts", name, len(rec), rec[0].Status, len(rec[0].Attempts))
			}
		}
	})
}

// Nobody hears what became of the calls that ended after the last settle: the process ends within its drain time.
func TestDrainWhileNobodyHears(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a := ws[0]
		a.config.Drain = 4 * time.Second
		a.tune = func(e *scheduler.Scheduler) {
			e.TellBy(func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
		}
		startAll(ws)
		due := w.now() + 10_000
		for i := range 1000 {
			name := fmt.Sprint("x-", i)
			behaveAll(ws, name, slow(time.Duration(1100+2*i)*time.Millisecond))
			a.make(timer(name, at(due), timeout(20*time.Second), to(1000+i)))
		}
		time.Sleep(10*time.Second + 100*time.Millisecond)
		a.slowly("Settle", 100*time.Millisecond)
		began := w.now()
		if err := a.stop(); err != nil {
			t.Error(err)
		}
		if took := w.now() - began; took > 5000 {
			t.Errorf("the process ended after %d ms", took)
		}
		time.Sleep(time.Minute)
	})
}

// The cold tier is away while a node gives shards, and a timer is being made, so no watermark may
// pass what was called meanwhile. These shards are given when the tier is back, and nothing that
// was called comes again.
func TestHandOverDuringAnOutage(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodesOf(2, 1)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		var away atomic.Bool
		a.before.set(func(op string, _ any) error {
			for ; op == "Apply" && away.Load(); time.Sleep(time.Second) {
			}
			if away.Load() && op != "Owed" && op != "Settle" {
				return engine.ErrUnavailable
			}
			return nil
		})
		a.start()
		time.Sleep(1300 * time.Millisecond)
		all := makeMany(ws[:1], 80)
		time.Sleep(3 * time.Second)
		away.Store(true)
		var made sync.WaitGroup
		made.Go(func() { a.Create(t.Context(), timer("made", every(time.Hour)), nil) })
		time.Sleep(1700 * time.Millisecond)
		b.start()
		time.Sleep(20 * time.Second)
		away.Store(false)
		time.Sleep(10 * time.Second)
		made.Wait()
		if n := b.node.owns(); n != 128 {
			t.Errorf("the second node owns %d shards", n)
		}
		for _, x := range all {
			called := map[engine.Key]bool{}
			for _, c := range ofAll(ws, x.name) {
				if called[c.key] {
					t.Errorf("%s, due %s, was called again at %s", x.name, stamp(c.key.Due), stamp(c.at))
				}
				called[c.key] = true
			}
		}
	})
}

// A watermark is held, and reads of one table fail for ever: the shards are given all the same, as the tier answers
// others, and the calls that no watermark could pass come again.
func TestHandOverBesideATableThatFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodesOf(2, 1)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		var holds atomic.Bool
		a.before.set(func(op string, _ any) error {
			for ; op == "Apply" && holds.Load(); time.Sleep(time.Second) {
			}
			if op == "Counts" && holds.Load() {
				return engine.ErrUnavailable
			}
			return nil
		})
		a.start()
		time.Sleep(1300 * time.Millisecond)
		makeMany(ws[:1], 80)
		holds.Store(true)
		var made sync.WaitGroup
		made.Go(func() { a.Create(t.Context(), timer("made", every(time.Hour)), nil) })
		time.Sleep(20 * time.Second) // until the counts have failed
		b.start()
		time.Sleep(time.Minute)
		if n := b.node.owns(); n != 128 {
			t.Errorf("the second node owns %d shards", n)
		}
		holds.Store(false)
		made.Wait()
		w.settle()
	})
}

// The clock of one of three nodes is set. The node calls nothing by that clock, and gives its
// shards to the others; when the clock is right again it gets its part back.
func TestNodeWithAWrongClock(t *testing.T) {
	t.Parallel()
	for _, step := range []time.Duration{5 * time.Second, -5 * time.Second} {
		t.Run(step.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				ws := w.nodes(3)
				defer endNodes(ws)
				startAll(ws)
				all := makeMany(ws, 90)
				time.Sleep(20*time.Second + 37*time.Millisecond)
				from := time.Now().UnixMilli()
				w.step(step)
				time.Sleep(5 * time.Second)
				if n := w.node.owns(); n != 0 {
					t.Errorf("it owns %d shards", n)
				}
				if err := w.Ready(); err == nil {
					t.Error("it is ready")
				}
				w.step(-step)
				time.Sleep(15 * time.Second)
				if n := w.node.owns(); n < engine.Shards/3 {
					t.Errorf("it owns %d shards when its clock is right again", n)
				}
				to := time.Now().UnixMilli()
				for _, x := range all {
					onOwner(t, ws, func(n *world) error {
						_, err := n.Disable(t.Context(), x.id, 0, "", 0)
						return err
					})
					seen := map[int64]bool{}
					for _, c := range ofAll(ws, x.name) {
						if late := c.at - c.key.Due; late < 0 || late > 2000 {
							t.Errorf("%s, due %s, was called %d ms late", x.name, stamp(c.key.Due), late)
						}
						if seen[c.key.Due] {
							t.Errorf("%s, due %s, was called again", x.name, stamp(c.key.Due))
						}
						seen[c.key.Due] = true
					}
					for _, due := range grid(x.from, to, x.every, x.from) {
						if !seen[due] {
							t.Errorf("%s, due %s, was not called; the clock was set at %s", x.name, stamp(due), stamp(from))
						}
					}
				}
				time.Sleep(10 * time.Second)
				for _, n := range ws {
					n.settle()
				}
			})
		})
	}
}

// Timers are changed, and their node is killed at once: what they had called before, and was
// not settled, has its record, though the other node has no journal of it.
func TestNodeThatDiesAfterAChange(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		startAll(ws)
		var ids []engine.TimerID
		for i := range 9 {
			ids = append(ids, a.make(timer(fmt.Sprint("often-", i), every(100*time.Millisecond))))
		}
		time.Sleep(4*time.Second + 430*time.Millisecond)
		for i, id := range ids {
			var err error
			switch i % 3 {
			case 0:
				_, err = a.Delete(t.Context(), id, 0)
			case 1:
				_, err = a.Disable(t.Context(), id, 0, "", 0)
			case 2:
				_, err = a.Replace(t.Context(), id, 0, func(d engine.Definition) (engine.Definition, error) {
					d.Schedule = every(10 * time.Second)
					return d, nil
				})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		called := map[engine.TimerID]int{}
		for i, id := range ids {
			called[id] = len(a.of(fmt.Sprint("often-", i)))
		}
		a.kill()
		time.Sleep(5 * time.Second)
		for i, id := range ids {
			if n := len(b.records(id)); n != called[id] {
				t.Errorf("timer %d was called %d times before its node died, and has %d records", i, called[id], n)
			}
		}
	})
}

package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
	"xtimer/engine/inspect"
	"xtimer/engine/limit"
)

// listWaiting reads the list of key k of some nodes, in pages; between is called between two pages.
func listWaiting(t *testing.T, ws []*world, size int, between func()) (tasks []*engine.Task) {
	t.Helper()
	c := inspect.WaitingCursor{App: "app", Key: "k"}
	for range 10_000 {
		l := inspect.NewWaitingList(&c)
		for i, w := range ws {
			name := fmt.Sprint("node-", i)
			p, err := w.Waiting(t.Context(), c.App, c.Key, c.Of[name], size)
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 { // as it comes from another process
				p.Encode(1 << 20)
				if err := p.Decode(); err != nil {
					t.Fatal(err)
				}
			}
			l.Add(name, p)
		}
		for range size {
			if k := l.Take(); k != nil {
				tasks = append(tasks, k)
			}
		}
		next, more := l.Cursor(&c)
		if !more {
			return tasks
		}
		c = next
		between()
	}
	t.Fatal("the list does not end")
	return nil
}

// The list of a key is in the order in which its tasks are called, those that are not in memory
// included, and says when.
func TestWaitingIsInTheOrderOfTheCalls(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting = 40
		w.start()
		const n = 200
		from := w.now()
		x := limit.Object{Limit: &flow.Limit{Rate: 10, Per: time.Second, Burst: 1}, PausedUntil: from + 30_000}
		if _, _, err := w.Objects().Put(t.Context(), limit.FlowKey("app", "k"), x.Body(), nil); err != nil {
			t.Fatal(err)
		}
		target := func(d *engine.Definition) { d.Callback.URL = "http://127.0.0.1:1/x" }
		for i := range n {
			w.make(timer(fmt.Sprint(i), at(from+1000+int64(i*37%n)*10), flows("k"), target))
		}
		w.make(timer("another", at(from+1000), flows("k2"), target))
		time.Sleep(10 * time.Second)
		if r := w.Resident(); r >= n {
			t.Fatalf("%d tasks are in memory", r)
		}
		listed := listWaiting(t, []*world{w}, 7, func() {})
		if len(listed) != n {
			t.Fatalf("%d of %d are listed", len(listed), n)
		}
		for i, k := range listed {
			if k.Status != engine.Waiting || k.Reason != "pause k" || k.Held() < 5*time.Second || k.Name == "" || k.App != "app" {
				t.Fatalf("task %d: %+v", i, k)
			}
		}
		time.Sleep(time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.calls) != n+1 {
			t.Fatalf("%d calls", len(w.calls))
		}
		for i, k := range listed {
			c := w.calls[i+1] // the first is of another key
			if c.key != k.Key {
				t.Fatalf("call %d is of %s, and the list has %s", i, c.name, k.Name)
			}
			if off := c.at - k.NotBefore; off < -200 || off > 200 {
				t.Errorf("call %d was made %d ms after the estimate", i, off)
			}
		}
	})
}

// While the tasks of a key are called, and come into memory, the pages have each that stays once.
func TestPagesOfWaitingHaveWhatStays(t *testing.T) {
	for _, rate := range []int{20, 200} {
		bubble(t, func(t *testing.T, w *world) {
			w.config.MaxWaiting = 60
			w.rules(map[flow.Name]flow.Rule{keyK: perSecond(rate)})
			w.start()
			due := w.now() + 2000
			var ids []engine.TimerID
			for i := range 500 {
				ids = append(ids, w.make(timer(fmt.Sprint(i), at(due+int64(i)), flows("k"), func(d *engine.Definition) {
					d.Callback.URL = fmt.Sprint("http://127.0.0.1:", 1+i%2, "/x")
				})))
			}
			time.Sleep(3500 * time.Millisecond)
			listed := map[engine.Key]int{}
			page := 0
			between := func() {
				if page++; page == 30 { // rows are listed, and the next of them come into memory
					time.Sleep(7 * time.Second)
				}
				time.Sleep(20 * time.Millisecond)
			}
			for _, k := range listWaiting(t, []*world{w}, 5, between) {
				if listed[k.Key]++; listed[k.Key] > 1 {
					t.Errorf("%s is listed twice", k.Key)
				}
			}
			called := map[engine.Key]bool{}
			w.mu.Lock()
			for _, c := range w.calls {
				called[c.key] = true
			}
			w.mu.Unlock()
			stays := 0
			for _, id := range ids {
				for _, o := range w.rowsOf(id) {
					if !called[o.Key] {
						if stays++; listed[o.Key] != 1 {
							t.Errorf("%s waits and is not listed", o.Key)
						}
					}
				}
			}
			if rate == 20 && stays == 0 {
				t.Error("nothing waits in the end")
			}
		})
	}
}

// Each task that waits is counted once, also where rows were counted that have come into memory since, as after a start.
func TestWaitingIsCountedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.rules(map[flow.Name]flow.Rule{keyK: pause})
		w.config.MaxWaiting = 40
		w.start()
		const n = 300
		due := w.now() + 1000
		for i := range n {
			w.make(timer(fmt.Sprint(i), at(due), flows("k"), func(d *engine.Definition) { d.Callback.URL = "http://127.0.0.1:1/x" }))
		}
		time.Sleep(10 * time.Second)
		w.config.MaxWaiting = 10_000
		w.before.set(func(op string, _ any) error {
			if op == "OwedIn" { // after the first count
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		})
		w.crash(time.Second)
		for range 12 {
			time.Sleep(time.Second)
			s, oldest, ok := w.Gate(keyK)
			stats, err := w.Stats(t.Context())
			apps := w.Apps().Page(t.Context(), "app", "", 1)
			if !ok || s.Waiting != n || oldest != due || err != nil || stats.Overdue != n || apps.Apps[0].Waiting != n || w.AppStats("app").Overdue != n || w.metric("xtimer_tasks_overdue") != n {
				t.Fatalf("the key says %d, the figures %d and %d, the app %d, the metric %v: of %d; the oldest %d of %d, %v",
					s.Waiting, stats.Overdue, w.AppStats("app").Overdue, apps.Apps[0].Waiting, w.metric("xtimer_tasks_overdue"), n, oldest, due, err)
			}
		}
	})
}

// A recurring timer that is behind is one entry.
func TestARangeIsOneEntry(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxWaiting = 20
		w.rules(map[flow.Name]flow.Rule{keyK: pause})
		w.start()
		w.make(timer("often", every(100*time.Millisecond), flows("k")))
		time.Sleep(20 * time.Second)
		var dues int64
		for _, k := range listWaiting(t, []*world{w}, 3, func() {}) {
			dues += max(k.Count, 1)
		}
		if dues < 190 || dues > 201 {
			t.Errorf("the list has %d dues", dues)
		}
	})
}

// The list has the tasks of all nodes, in the order in which they came.
func TestWaitingOfNodes(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		for _, x := range ws {
			x.rules(map[flow.Name]flow.Rule{keyK: pause})
			x.config.MaxWaiting = 40
			x.start()
		}
		time.Sleep(time.Second)
		due := w.now() + 1000
		const n = 100
		for i := range n {
			ws[i%2].make(timer(fmt.Sprint(i), at(due+int64(i)*10), flows("k")))
		}
		time.Sleep(10 * time.Second)
		listed := listWaiting(t, ws, 9, func() {})
		had := map[engine.Key]bool{}
		for i, k := range listed {
			if had[k.Key] = true; i < 30 && k.Name != fmt.Sprint(i) { // those in memory
				t.Errorf("entry %d is of %s", i, k.Name)
			}
		}
		if len(listed) != n || len(had) != n {
			t.Errorf("%d tasks in %d entries", len(had), len(listed))
		}
	})
}

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
	"xtimer/engine/change"
	"xtimer/engine/inspect"
)

// A listing of tasks merges what is in memory with history: every task once,
// newest first, over pages of any size, while settling stands still.
func TestTasksMergesMemoryAndHistory(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var away atomic.Bool
		w.before.set(func(op string, _ any) error {
			if op == "Settle" && away.Load() {
				return errors.New("the cold tier is away.Load()")
			}
			return nil
		})
		w.start()
		from := w.now()
		for i := range 3 {
			w.make(timer(fmt.Sprint(i), every(time.Second)))
		}
		w.replies("2", slow(30*time.Second))
		time.Sleep(10*time.Second + 500*time.Millisecond)
		away.Store(true)
		time.Sleep(10 * time.Second)
		for _, limit := range []int{1, 2, 7, 1000} {
			seen := map[engine.Key]bool{}
			last := engine.Key{Due: 1 << 62}
			for before := (engine.Key{}); ; {
				ts, next, err := w.Tasks(t.Context(), engine.TaskFilter{From: from}, before, limit)
				if err != nil || len(ts) > limit {
					t.Fatalf("limit %d: %d tasks, %v", limit, len(ts), err)
				}
				for _, x := range ts {
					if seen[x.Key] || x.Key.Due > last.Due {
						t.Fatalf("limit %d: %s again, or out of order", limit, x.Key)
					}
					seen[x.Key], last = true, x.Key
				}
				if before = next; before == (engine.Key{}) {
					break
				}
			}
			if len(seen) != 60 {
				t.Errorf("limit %d: %d tasks, want 60", limit, len(seen))
			}
		}
		running, _, err := w.Tasks(t.Context(), engine.TaskFilter{Statuses: []engine.TaskStatus{engine.Running}}, engine.Key{}, 100)
		if err != nil || len(running) != 20 {
			t.Errorf("%d tasks are running, want 20; %v", len(running), err)
		}
		away.Store(false)
	})
}

// Subscribers hear of every task that ends, and of no other's.
func TestSubscribe(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		a := w.make(timer("a", every(time.Second)))
		w.make(timer("b", every(time.Second)))
		w.replies("a", ok, reject, ok)
		tasks := w.Subscribers().Subscribe(ctx, engine.TaskFilter{Timer: a}, nil)
		time.Sleep(10*time.Second + 500*time.Millisecond)
		cancel()
		n, failed := 0, 0
		for _, x := range told(t, tasks) {
			if n++; x.Key.Timer != a || !x.Status.Final() || len(x.Attempts) != 1 {
				t.Errorf("%+v", x)
			}
			if x.Status == engine.Failed {
				failed++
			}
		}
		if n != 10 || failed != 1 {
			t.Errorf("%d tasks, %d failed; want 10, 1", n, failed)
		}
	})
}

// told are the tasks that a subscriber has been told of so far.
func told(t *testing.T, w *inspect.Subscription) (ts []*engine.Task) {
	t.Helper()
	for {
		e, ok, err := w.Next(t.Context())
		switch {
		case err != nil || ok && e.Task == nil:
			t.Fatal(e, err)
		case !ok:
			return ts
		}
		ts = append(ts, e.Task)
	}
}

// A subscriber that comes back after a crash is told what ended since its last event.
func TestSubscribeAgain(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w.make(timer("a", every(time.Second)))
		tasks := w.Subscribers().Subscribe(ctx, engine.TaskFilter{}, nil)
		seen := map[engine.Key]bool{}
		read := func() {
			for _, x := range told(t, tasks) {
				seen[x.Key] = true
			}
		}
		time.Sleep(5*time.Second + 500*time.Millisecond)
		read()
		last := tasks.Position()
		for range 2 {
			time.Sleep(5 * time.Second)
			w.crash(3 * time.Second)
		}
		time.Sleep(5 * time.Second)
		tasks = w.Subscribers().Subscribe(ctx, engine.TaskFilter{}, &last)
		read()
		time.Sleep(2 * time.Second)
		read()
		ended := 0
		page, _, err := w.Tasks(t.Context(), engine.TaskFilter{}, engine.Key{}, 100)
		for _, x := range page {
			if x.Status.Final() {
				if ended++; !seen[x.Key] {
					t.Errorf("%v was not told", x.Key)
				}
			}
		}
		if err != nil || ended < 25 || len(seen) != ended {
			t.Errorf("%d were told of %d; %v", len(seen), ended, err)
		}
	})
}

// Subscribers hear of dues that a step of the clock made misfires, and of those
// that a change cancelled.
func TestSubscribeWhatIsNotCalled(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		id := w.make(timer("a", every(10*time.Second), misfire(engine.MisfireSkip, time.Hour)))
		tasks := w.Subscribers().Subscribe(ctx, engine.TaskFilter{}, nil)
		time.Sleep(15 * time.Second)
		w.step(time.Minute)
		time.Sleep(time.Second) // 76 s
		w.replies("a", fail)
		time.Sleep(5 * time.Second)
		w.disable(id, 0)
		cancel()
		var got []string
		for _, x := range told(t, tasks) {
			got = append(got, fmt.Sprint((x.Key.Due-w.starts[0])/1000, " ", x.Status, " ", x.Count))
		}
		slices.Sort(got)
		equal(t, "told", got, []string{"10 succeeded 0", "20 skipped 5", "70 succeeded 0", "80 cancelled 0"})
	})
}

// A timer that has no due any more says so while its last call is under way, and
// one that is created overdue says what it is overdue for.
func TestNextDueOfTheLast(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		next := func(id engine.TimerID) int64 {
			v, err := w.Timer(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return v.NextDue
		}
		w.replies("once", slow(time.Minute))
		w.replies("thrice", slow(time.Minute))
		thrice := every(time.Second)
		thrice.MaxRuns = 3
		for name, s := range map[string]engine.Schedule{"once": delay(time.Second), "thrice": thrice} {
			id := w.make(timer(name, s, timeout(10*time.Minute)))
			if due := next(id); due != w.now()+1000 {
				t.Errorf("%s is due next at %d", name, due)
			}
			time.Sleep(3500 * time.Millisecond)
			if due := next(id); due != 0 {
				t.Errorf("%s is due next at %d, it has no more dues", name, due)
			}
		}
		past := w.now() - 5000
		c := w.Create(t.Context(), timer("late", at(past)), nil)
		if c.Err != nil || c.View.NextDue != past {
			t.Errorf("created overdue: next due %d, want %d (%v)", c.View.NextDue, past, c.Err)
		}
	})
}

func TestStats(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		w.replies("slow", slow(time.Hour))
		w.make(timer("slow", delay(time.Second), timeout(10*time.Minute)))
		w.make(timer("a", every(time.Second)))
		w.make(timer("off", every(time.Second)))
		time.Sleep(time.Millisecond) // the hour is filled, and has them all
		v, err := w.TimerByName(t.Context(), "app", "off")
		if err != nil {
			t.Fatal(err)
		}
		w.disable(v.ID, 0)
		time.Sleep(90*time.Second + 499*time.Millisecond)
		s, err := w.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Timers != (engine.Counts{Enabled: 2, Disabled: 1}) || s.InFlight != 1 || s.Overdue != 0 ||
			s.Ended[engine.Succeeded] != 90 || s.FiresPerSec < 0.9 || s.FiresPerSec > 1.1 || s.Lateness[2] > 1 || s.Uptime < 90*time.Second {
			t.Errorf("%+v", s)
		}
		for i, n := range s.DueByMinute[:59] {
			if i > 1 && n != 2 { // the disabled one is not taken off
				t.Errorf("minute %d has %d due, want 2", i, n)
			}
		}
	})
}

// What a start decides counts for the app as for the service.
func TestAStartCountsForTheApp(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		w.replies("unknown", slow(time.Hour))
		w.make(timer("unknown", delay(5*time.Second), atMostOnce))
		w.make(timer("missed", every(time.Second), misfire(engine.MisfireSkip, time.Minute)))
		time.Sleep(6 * time.Second)
		w.crash(10 * time.Minute)
		s, err := w.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s.Ended[engine.Unknown] != 1 || s.Ended[engine.Missed]+s.Ended[engine.Skipped] < 500 {
			t.Errorf("the service: %v", s.Ended)
		}
		app := w.Apps().Page(t.Context(), "app", "", 1).Apps[0]
		if m := w.AppMinute("app"); m.Ended != s.Ended || app.SinceStart != s.Ended || app.Hour.Ended != s.Ended {
			t.Errorf("the service has %v, the app %v, in the last hour %v", s.Ended, m.Ended, app.Hour.Ended)
		}
	})
}

// max_runs count the dues from the last time that the timer was created, was enabled while it
// was disabled, or got another schedule: also those that a disable until an instant leaves out.
func TestMaxRunsCountFrom(t *testing.T) {
	runs := func(n int64) engine.Schedule { return engine.Schedule{Every: 10 * time.Second, MaxRuns: n} }
	off := func(d time.Duration) func(*world, engine.TimerID) {
		return func(w *world, id engine.TimerID) {
			until := int64(0) // for good
			if d > 0 {
				until = w.now() + d.Milliseconds()
			}
			w.disable(id, until)
		}
	}
	on := func(w *world, id engine.TimerID) { w.enable(id, engine.CatchUpNone) }
	patch := func(w *world, id engine.TimerID) {
		if _, err := w.Replace(w.t.Context(), id, 0, func(d engine.Definition) (engine.Definition, error) {
			d.Callback.URL += "/changed"
			return d, nil
		}); err != nil {
			w.t.Error(err)
		}
	}
	more := func(w *world, id engine.TimerID) {
		if err := w.reschedule(id, runs(4)); err != nil {
			w.t.Error(err)
		}
	}
	for name, x := range map[string]struct {
		do   []func(*world, engine.TimerID) // at 15 s, 45 s
		dues []int64
	}{
		"nothing":                  {nil, []int64{10, 20, 30}},
		"another callback":         {[]func(*world, engine.TimerID){patch}, []int64{10, 20, 30}},
		"enabled while enabled":    {[]func(*world, engine.TimerID){on}, []int64{10, 20, 30}},
		"disabled until":           {[]func(*world, engine.TimerID){off(10 * time.Second)}, []int64{10, 30}},
		"disabled until the end":   {[]func(*world, engine.TimerID){off(25 * time.Second), on}, []int64{10}},
		"disabled and enabled":     {[]func(*world, engine.TimerID){off(0), on}, []int64{10, 50, 60, 70}},
		"enabled before until":     {[]func(*world, engine.TimerID){off(time.Hour), on}, []int64{10, 50, 60, 70}},
		"another schedule":         {[]func(*world, engine.TimerID){more}, []int64{10, 20, 30, 40, 50}},
		"another, when it is over": {[]func(*world, engine.TimerID){patch, more}, []int64{10, 20, 30, 50, 60, 70, 80}},
	} {
		t.Run(name, func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				from := w.now()
				id := w.make(timer("a", runs(3)))
				time.Sleep(15 * time.Second)
				for _, do := range x.do {
					do(w, id)
					time.Sleep(30 * time.Second)
				}
				time.Sleep(2 * time.Minute)
				got := dues(w.of("a"))
				for i := range got {
					got[i] = (got[i] - from) / 1000
				}
				equal(t, "dues", got, x.dues)
			})
		})
	}
}

// Bulk operations select, count and do.
func TestBulk(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		for i := range 200 {
			name := fmt.Sprint(i)
			w.replies(name, reject, ok)
			w.make(timer(name, every(10*time.Second), func(d *engine.Definition) {
				d.Labels = engine.SortLabels(map[string]string{"even": fmt.Sprint(i%2 == 0)})
			}))
		}
		even := engine.TimerFilter{App: "app", Labels: []engine.LabelMatch{{Key: "even", Value: "true"}}}
		do := func(b change.Bulk, want int64) {
			t.Helper()
			op, err := w.StartBulk(t.Context(), b)
			if err != nil || op.Total != want || !op.Ended || op.Failed != 0 || !b.DryRun && op.Done != want {
				t.Errorf("%v: %+v, %v", b.Action, op, err)
			}
		}
		do(change.Bulk{Action: change.DisableAll, Timers: even, DryRun: true}, 100)
		do(change.Bulk{Action: change.DisableAll, Timers: even}, 100)
		time.Sleep(15 * time.Second)
		if n := len(w.of("0")) + len(w.of("198")); n != 0 {
			t.Errorf("disabled timers were called %d times", n)
		}
		do(change.Bulk{Action: change.RedriveAll, Tasks: engine.TaskFilter{App: "app"}}, 100)
		time.Sleep(time.Second)
		if n := len(w.of("1")); n != 2 {
			t.Errorf("after the retry by hand %d calls, want 2", n)
		}
		do(change.Bulk{Action: change.EnableAll, Timers: even}, 100)
		do(change.Bulk{Action: change.DeleteAll, Timers: engine.TimerFilter{App: "app"}}, 200)
		n := len(w.of("0")) + len(w.of("1"))
		time.Sleep(time.Minute)
		if m := len(w.of("0")) + len(w.of("1")); m != n {
			t.Errorf("deleted timers were called")
		}
	})
}

// A slow target, a noisy app, does not make the rest late.
func TestSlowTargetLeavesTheRestOnTime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.config.MaxCalls = 16
		w.start()
		to := func(host, app string) func(*engine.Definition) {
			return func(d *engine.Definition) { d.App, d.Callback.URL = app, "http://"+host+"/" }
		}
		for i := range 50 {
			name := fmt.Sprint("slow", i)
			w.replies(name, slow(10*time.Second))
			w.make(timer(name, every(time.Second), to("slow", "noisy"), timeout(10*time.Second)))
		}
		from := w.now()
		id := w.make(timer("quick", every(100*time.Millisecond), to("quick", "quiet")))
		same := w.make(timer("same", every(100*time.Millisecond), to("quick", "noisy")))
		time.Sleep(20*time.Second + 50*time.Millisecond)
		now := w.now()
		w.disable(id, 0)
		w.disable(same, 0)
		w.settle()
		w.exact("quick", id, grid(from, now, 100, from), 0)
		w.exact("same", same, grid(from, now, 100, from), 0)
	})
}

// A task that was made due again by hand is not listed as dead any more.
func TestTasksAsTheyStandNow(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		from := w.now()
		w.replies("a", fail, fail, slow(30*time.Second))
		id := w.make(timer("a", delay(time.Second), retry(2, time.Second, 1), timeout(time.Minute)))
		time.Sleep(10 * time.Second)
		if err := w.Redrive(t.Context(), engine.Key{Timer: id, Due: from + 1000}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for status, want := range map[engine.TaskStatus]int{engine.Dead: 0, engine.Running: 1} {
			ts, _, err := w.Tasks(t.Context(), engine.TaskFilter{Statuses: []engine.TaskStatus{status}}, engine.Key{}, 10)
			if err != nil || len(ts) != want {
				t.Errorf("%d tasks are listed as %s, want %d; %v", len(ts), status, want, err)
			}
		}
	})
}

// A list's last tasks are those of the timers one by one: of memory and of history.
func TestLastTasksOfAList(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		w.make(timer("ended", every(time.Minute)))
		w.make(timer("open", every(time.Minute)))
		w.make(timer("none", delay(time.Hour)))
		w.replies("ended", fail)
		w.replies("open", ok, slow(time.Hour))
		time.Sleep(2*time.Minute + time.Second)
		vs, _, err := w.Timers(t.Context(), engine.TimerFilter{}, "", 10, false, nil)
		if err != nil || len(vs) != 3 {
			t.Fatalf("%d timers, %v", len(vs), err)
		}
		if err := w.LastTasks(t.Context(), vs); err != nil {
			t.Fatal(err)
		}
		for i := range vs {
			one, err := w.Timer(t.Context(), vs[i].ID)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := vs[i].LastTask, one.LastTask; (got == nil) != (want == nil) || got != nil && (got.Key != want.Key || got.Status != want.Status) {
				t.Errorf("%s: %+v, want %+v", vs[i].Name, got, want)
			}
			if (vs[i].LastTask == nil) != (vs[i].Name == "none") {
				t.Errorf("%s: last task %+v", vs[i].Name, vs[i].LastTask)
			}
		}
	})
}

// After a restart a timer's last task is still known, however it stood.
func TestLastTasksAfterARestart(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		far := func(d *engine.Definition) {
			d.Retry = engine.Retry{MaxAttempts: 2, Backoff: 8 * time.Minute, Multiplier: 1, MaxBackoff: 8 * time.Minute, MaxAge: 24 * time.Hour}
		}
		want := map[string]engine.TaskStatus{"good": engine.Succeeded, "rejected": engine.Failed, "once": engine.Failed, "retrying": engine.Retrying}
		w.make(timer("good", every(10*time.Minute)))
		w.make(timer("rejected", every(10*time.Minute)))
		w.make(timer("once", delay(5*time.Minute)))
		w.make(timer("retrying", every(10*time.Minute), far))
		for name, r := range map[string]reply{"rejected": reject, "once": reject, "retrying": fail} {
			w.replies(name, r)
		}
		time.Sleep(10*time.Minute + 10*time.Second)
		w.crash(time.Second)
		time.Sleep(time.Minute)
		vs, _, err := w.Timers(t.Context(), engine.TimerFilter{}, "", 10, false, nil)
		if err == nil {
			err = w.LastTasks(t.Context(), vs)
		}
		if err != nil || len(vs) != len(want) {
			t.Fatalf("%d timers, %v", len(vs), err)
		}
		for _, v := range vs {
			if v.LastTask == nil || v.LastTask.Status != want[v.Name] {
				t.Errorf("%s: last task %+v", v.Name, v.LastTask)
			}
		}
	})
}

// A timer whose retry is far, and so not in memory, is not over: neither by itself, nor in
// a list, a count or a bulk operation.
func TestFarRetryIsNotFinished(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		w.replies("a", fail, ok)
		id := w.make(timer("a", delay(time.Second), retry(5, 20*time.Minute, 1)))
		time.Sleep(5 * time.Minute)
		v, err := w.Timer(t.Context(), id)
		if err != nil || v.Status != engine.Enabled {
			t.Errorf("the timer is %v, %v", v.Status, err)
		}
		all, _, err := w.Timers(t.Context(), engine.TimerFilter{}, "", 10, false, nil)
		if err != nil || len(all) != 1 || all[0].Status != engine.Enabled {
			t.Errorf("listed: %+v, %v", all, err)
		}
		for status, want := range map[engine.Status]int64{engine.Enabled: 1, engine.Finished: 0} {
			f := engine.TimerFilter{HasStatus: true, Status: status}
			listed, _, err := w.Timers(t.Context(), f, "", 10, false, nil)
			if err != nil || int64(len(listed)) != want {
				t.Errorf("%d are listed as %v, %v", len(listed), status, err)
			}
			if n, _, err := w.CountTimers(t.Context(), f, nil); err != nil || n != want {
				t.Errorf("%d are counted as %v, %v", n, status, err)
			}
			op, err := w.StartBulk(t.Context(), change.Bulk{Action: change.DeleteAll, Timers: f, DryRun: true})
			if err != nil || op.Total != want {
				t.Errorf("%d would be deleted as %v, %v", op.Total, status, err)
			}
		}
		time.Sleep(20 * time.Minute)
		if v, err = w.Timer(t.Context(), id); err != nil || v.Status != engine.Finished {
			t.Errorf("after its success the timer is %v, %v", v.Status, err)
		}
	})
}

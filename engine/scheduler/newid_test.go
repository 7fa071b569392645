package scheduler_test

import (
	"fmt"
	"testing"
	"time"
)

// An id is never issued again: not of a timer that was deleted, or of which nothing
// is kept any more, though the process was started anew with its clock set back to
// when the timer was created.
func TestNoIDTwice(t *testing.T) {
	for _, deletes := range []bool{false, true} {
		for _, sweeps := range []bool{false, true} {
			t.Run(fmt.Sprint("deleted ", deletes, ", forgotten ", sweeps), func(t *testing.T) {
				begin(t, func(t *testing.T, w *world) {
					made := w.now()
					old := w.make(timer("a", delay(2*time.Second)))
					time.Sleep(3 * time.Second)
					if got := fmt.Sprint(w.verdicts(old, made)); got != "[2s succeeded]" {
						t.Fatal(got)
					}
					if deletes {
						if _, err := w.Delete(t.Context(), old, 0); err != nil {
							t.Fatal(err)
						}
					}
					w.settle()
					if err := w.stop(); err != nil {
						t.Fatal(err)
					}
					if later := w.now() + 100*24*3_600_000; sweeps {
						if _, err := w.cold.Sweep(t.Context(), later, later, later); err != nil {
							t.Fatal(err)
						}
					}
					w.step(time.Duration(made-w.now()) * time.Millisecond)
					w.start()
					w.step(time.Duration(made-w.now()) * time.Millisecond) // the start took a while
					id := w.make(timer("b", delay(time.Second)))
					if id <= old {
						t.Errorf("timer %s was created after timer %s", id, old)
					}
					if rs := w.records(id); len(rs) != 0 {
						t.Errorf("the new timer begins with %d records", len(rs))
					}
				})
			})
		}
	}
}

// A node makes no id that the former owner of a shard has made, whose clock was ahead.
func TestNoIDTwiceOnNodes(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ws := w.nodes(2)
		defer endNodes(ws)
		a, b := ws[0], ws[1]
		a.step(5 * time.Second)
		a.start()
		b.start()
		time.Sleep(time.Second)
		newest := a.make(timer("first", every(time.Hour)))
		for i := range 50 {
			newest = max(newest, a.make(timer(fmt.Sprint("a-", i), every(time.Hour))))
		}
		if id := b.make(timer("between", every(time.Hour))); id > newest {
			t.Fatalf("timer %s was created after timer %s by a clock that is behind", id, newest)
		}
		a.kill()
		time.Sleep(3500 * time.Millisecond)
		for i := range 50 {
			if id := b.make(timer(fmt.Sprint("b-", i), every(time.Hour))); id <= newest {
				t.Fatalf("timer %s was created after timer %s", id, newest)
			}
		}
	})
}

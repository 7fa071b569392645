package main

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// figures are one row of the table.
type figures struct {
	setup
	skipped  string          // why there are none
	oneByOne float64         // scheduled a second
	batched  float64         // 0: it has no batches
	late     []time.Duration // sorted; at the rate, of all that arrived
	wanted   int
	early    int
	fires    float64 // a second, at saturation
	fired    int     // of the burst, in time
	stolen   float64 // share of the processor time wanted for all above
	memory   []memory
	kill     *killed9
}

// memory of so many waiting tasks.
type memory struct {
	asked, n int // n is less when adding took too long
	bytes    int64
}

// addingWaits is how long adding them may take: most peers have a million by then.
const addingWaits = 90 * time.Second

// far is when tasks are due that are not to fire: in an hour or two.
func far(n int) tasks {
	return tasks{First: newNumbers(n), N: n, Start: time.Now().Add(time.Hour).UnixMilli(), Over: time.Hour}
}

// bench measures setups, one after the other.
type bench struct {
	dir      string
	receiver *receiver
}

// with runs a step on a fresh subject.
func (b *bench) with(s setup, do func(*running) error) error {
	r, err := s.fresh(b.dir, b.receiver.url)
	if err != nil {
		return err
	}
	defer r.close()
	if err := r.warm(b.receiver, s.noop); err != nil {
		return err
	}
	return do(r)
}

func (b *bench) measure(s setup) (f *figures, err error) {
	// What is stolen is nothing of the row's: the rates of the quietest of three.
	for range 3 {
		again, err := b.timed(s)
		if err != nil {
			return nil, err
		}
		if f == nil || again.stolen < f.stolen {
			f = again
		}
		if f.stolen <= .05 {
			break
		}
	}
	// A no-op handler changes neither what adding costs nor what waits, and the
	// settings of the best none of what is stored.
	if !s.noop && (s.store == "" || s.best) {
		if err := errors.Join(b.waiting(f), b.killing(f)); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// timed measures what depends on how much of the processors is to be had.
func (b *bench) timed(s setup) (*figures, error) {
	f := &figures{setup: s}
	steps := []func(*figures) error{b.oneByOne, b.batched, b.lateness, b.saturation}
	if s.noop {
		steps = steps[2:]
	}
	awaitQuiet()
	since := ticksOf()
	for _, step := range steps {
		if err := step(f); err != nil {
			return nil, err
		}
	}
	f.stolen = ticksOf().stolenSince(since)
	return f, nil
}

// scheduled a second, for so many seconds.
func (b *bench) scheduled(s setup, batch bool) (perSecond float64, err error) {
	const plenty = 5_000_000
	err = b.with(s, func(r *running) error {
		got, err := r.add(order{Tasks: far(plenty), Batch: batch, Within: time.Duration(seconds) * time.Second})
		perSecond = float64(got.Added) / got.Took.Seconds()
		return err
	})
	return perSecond, err
}

func (b *bench) oneByOne(f *figures) (err error) {
	f.oneByOne, err = b.scheduled(f.setup, false)
	return err
}

func (f *figures) hasBatches() bool { return f.kind == "xtimer" || f.kind == "river" }

func (b *bench) batched(f *figures) (err error) {
	if f.hasBatches() {
		f.batched, err = b.scheduled(f.setup, true)
	}
	return err
}

// fire adds tasks that are due over a time, all before the first is, and waits
// for them; what is too slow for that gets as much as it can take.
func (b *bench) fire(r *running, f *figures, n int, over time.Duration) (ts tasks, as []arrival, err error) {
	// How long adding takes is known from the step before; a no-op row is its
	// neighbour's.
	lead := 2 * time.Second
	if speed := max(f.oneByOne, f.batched, 2000); f.store != "" || f.kind == "xtimer" {
		lead += time.Duration(1.5 * float64(n) / speed * 1e9)
	}
	ts = tasks{First: newNumbers(n), N: n, Start: time.Now().Add(lead).UnixMilli(), Over: over}
	b.receiver.take()
	got, err := r.add(order{Tasks: ts, Batch: f.hasBatches(), Within: lead})
	if err != nil {
		return ts, nil, err
	}
	over = over * time.Duration(got.Added) / time.Duration(n)
	ts.N = got.Added
	last := time.UnixMilli(ts.Start).Add(over)
	for deadline := last.Add(time.Duration(capped) * time.Second); time.Now().Before(deadline) && len(as) < ts.N; time.Sleep(50 * time.Millisecond) {
		more := b.receiver.take()
		if f.noop && time.Now().After(last) {
			if more, err = r.heard(); err != nil {
				return ts, nil, err
			}
		}
		for _, a := range more {
			if a.Task.Number >= ts.First {
				as = append(as, a)
			}
		}
	}
	return ts, as, nil
}

func (b *bench) lateness(f *figures) error {
	return b.with(f.setup, func(r *running) error {
		n := rate * seconds * 2
		ts, as, err := b.fire(r, f, n, time.Duration(seconds)*2*time.Second)
		f.wanted = ts.N
		for _, a := range as {
			f.late = append(f.late, a.late())
			if a.late() < 0 {
				f.early++
			}
		}
		slices.Sort(f.late)
		return err
	})
}

func (b *bench) saturation(f *figures) error {
	return b.with(f.setup, func(r *running) error {
		_, as, err := b.fire(r, f, burst, 0)
		if err != nil || len(as) < 2 {
			return err
		}
		// From the first call, not from the due: how late it begins is the lateness.
		slices.SortFunc(as, func(a, b arrival) int { return cmp.Compare(a.At, b.At) })
		took := time.Duration(as[len(as)-1].At - as[0].At)
		f.fires = float64(len(as)-1) / took.Seconds()
		f.fired = len(as)
		return nil
	})
}

func (b *bench) waiting(f *figures) error {
	for _, n := range waiting {
		err := b.with(f.setup, func(r *running) error {
			time.Sleep(time.Second)
			none := r.memory()
			got, err := r.add(order{Tasks: far(n), Batch: f.hasBatches(), Within: addingWaits})
			if err != nil {
				return err
			}
			time.Sleep(3 * time.Second)
			f.memory = append(f.memory, memory{n, got.Added, r.memory() - none})
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

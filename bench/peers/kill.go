package main

import "time"

// killed9 is what SIGKILLs in mid-load do: the process dies, its server (if it
// has one) does not, and it is started again at once.
type killed9 struct {
	acknowledged int
	lost         int
	repeats      int
	last         time.Duration // from the last restart to the last call
}

// Load: so many tasks a second, each due 1 to 2 s after it was added; the
// process dies again and again. The receiver takes its time, so that calls are
// under way when it happens.
const (
	kills     = 3
	killRate  = 1000
	killChunk = 50
	killAfter = 2300 * time.Millisecond // no whole seconds: some peers work in those
	killDelay = 50 * time.Millisecond
)

func (b *bench) killing(f *figures) error {
	return b.with(f.setup, func(r *running) error {
		b.receiver.take()
		b.receiver.delay.Store(int64(killDelay))
		defer b.receiver.delay.Store(0)

		// What is acknowledged counts; the chunk that dies with the process does not.
		acked := map[int]bool{}
		load := func(until time.Time) error {
			tick := time.NewTicker(time.Second * killChunk / killRate)
			defer tick.Stop()
			for time.Now().Before(until) {
				ts := tasks{First: newNumbers(killChunk), N: killChunk, Start: time.Now().Add(time.Second).UnixMilli(), Over: time.Second}
				got, err := r.add(order{Tasks: ts, Within: 10 * time.Second})
				if err != nil {
					return err
				}
				for i := range got.Added {
					acked[ts.First+i] = true
				}
				<-tick.C
			}
			return nil
		}
		for range kills {
			if err := load(time.Now().Add(killAfter)); err != nil {
				return err
			}
			r.kill()
			if err := r.start(); err != nil {
				return err
			}
		}
		up := time.Now()
		if err := load(up.Add(time.Second)); err != nil {
			return err
		}

		// For as long as the peer may need to notice what died, repeats too, and
		// then until nothing comes any more.
		calls := map[int]int{}
		k := &killed9{acknowledged: len(acked)}
		quiet := time.Now()
		for time.Since(up) < f.recovers || time.Since(quiet) < 2*time.Second {
			for _, a := range b.receiver.take() {
				quiet = time.Now()
				calls[a.Task.Number]++
				if acked[a.Task.Number] && calls[a.Task.Number] == 1 {
					k.last = max(k.last, time.Unix(0, a.At).Sub(up))
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
		for number := range acked {
			if calls[number] == 0 {
				k.lost++
			}
		}
		for _, n := range calls {
			k.repeats += n - 1
		}
		f.kill = k
		return nil
	})
}

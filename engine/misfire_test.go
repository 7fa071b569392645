package engine_test

import (
	"testing"
	"time"

	"xtimer/engine"
)

// What a start finds more than 10 s late follows the policy; what is less late
// fires late; what is older than the window is missed. Consecutive dues that are
// not called are one record with their count.
func TestMisfire(t *testing.T) {
	const (
		latest, skip, all = engine.MisfireLatest, engine.MisfireSkip, engine.MisfireAll
		h                 = time.Hour
	)
	for _, x := range []struct {
		name   string
		s      engine.Schedule
		policy engine.MisfirePolicy
		window time.Duration
		down   time.Duration // from 5 s after the creation on
		want   []string      // by the time 5 s after the start
	}{
		{"5s latest", every(4 * time.Second), latest, h, 5 * time.Second, []string{"4s succeeded", "8s succeeded", "12s succeeded"}},
		{"5s skip", every(4 * time.Second), skip, h, 5 * time.Second, []string{"4s succeeded", "8s succeeded", "12s succeeded"}},
		{"5s, no window", every(4 * time.Second), all, 0, 5 * time.Second, []string{"4s succeeded", "8s missed misfire_window", "12s succeeded"}},
		{"1m latest", every(20 * time.Second), latest, h, time.Minute, []string{"20s skipped misfire", "40s succeeded", "1m0s succeeded"}},
		{"1m skip", every(20 * time.Second), skip, h, time.Minute, []string{"20s…40s ×2 skipped misfire", "1m0s succeeded"}},
		{"1m all", every(20 * time.Second), all, h, time.Minute, []string{"20s succeeded", "40s succeeded", "1m0s succeeded"}},
		{"1m all, window 30s", every(20 * time.Second), all, 30 * time.Second, time.Minute, []string{"20s missed misfire_window", "40s succeeded", "1m0s succeeded"}},
		{"30h latest", every(h), latest, 24 * h, 30 * h, []string{"1h0m0s…6h0m0s ×6 missed misfire_window", "7h0m0s…28h0m0s ×22 skipped misfire", "29h0m0s succeeded", "30h0m0s succeeded"}},
		{"30h skip", every(h), skip, 24 * h, 30 * h, []string{"1h0m0s…6h0m0s ×6 missed misfire_window", "7h0m0s…29h0m0s ×23 skipped misfire", "30h0m0s succeeded"}},
		{"one-shot 1m skip", delay(20 * time.Second), skip, h, time.Minute, []string{"20s succeeded"}},
		{"one-shot 30h, window 24h", delay(20 * time.Second), latest, 24 * h, 30 * h, []string{"20s missed misfire_window"}},
		{"one-shot 30h, window 48h", delay(20 * time.Second), latest, 48 * h, 30 * h, []string{"20s succeeded"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			begin(t, func(t *testing.T, w *world) {
				from := w.now()
				id := w.make(timer("a", x.s, misfire(x.policy, x.window)))
				time.Sleep(5 * time.Second)
				w.crash(x.down)
				w.settle()
				got := w.verdicts(id, from)
				equal(t, "verdicts", got, x.want)
				for _, c := range w.of("a") {
					if late := c.key.Due < w.starts[1] && c.key.Due > w.crashes[0]; late != c.redelivered {
						t.Errorf("due %d: redelivered %v", c.key.Due-from, c.redelivered)
					}
				}
				n := len(w.of("a"))
				w.crash(time.Second)
				w.settle()
				for _, c := range w.of("a")[n:] {
					if c.key.Due < w.crashes[1]-1000 {
						t.Errorf("due %d was called again after another start", c.key.Due-from)
					}
				}
			})
		})
	}
}

// Under the policy all, more than a thousand dues are owed as a range and all
// called, once, also over a second crash in the middle of it.
func TestMisfireRange(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		from := w.now()
		w.behave("a", func(*call) reply { return slow(300 * time.Millisecond) })
		id := w.make(timer("a", every(50*time.Millisecond), misfire(engine.MisfireAll, time.Hour)))
		time.Sleep(time.Second)
		w.crash(4 * time.Minute)
		time.Sleep(200 * time.Millisecond)
		w.crash(time.Second)
		time.Sleep(time.Minute)
		w.disable(id, 0)
		to := w.now()
		w.settle()
		w.accounted(id, from, to, 50)
		last := map[int64]call{}
		for _, c := range w.of("a") {
			if was, again := last[c.key.Due]; again && was.ended != 0 && was.ended < w.crashes[0]-20 {
				t.Errorf("due %d was called again", c.key.Due-from)
			}
			last[c.key.Due] = c
		}
		if n := len(grid(from, to, 50, from)); len(last) != n {
			t.Errorf("%d dues were called, want %d", len(last), n)
		}
	})
}

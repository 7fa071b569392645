package scheduler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/scheduler"
)

// A start that recovers the shards in parts, one after the other, does what a start does
// that recovers all of them at once: after a crash, and after one before which the clock was
// set back.
func TestStartInParts(t *testing.T) {
	even, odd := engine.Set{}, engine.Set{}
	for i := 0; i < engine.Shards; i += 2 {
		even, odd = even.Union(engine.SetOf(i)), odd.Union(engine.SetOf(i+1))
	}
	whole := startedIn(t, engine.AllShards)
	halves := startedIn(t, odd, even)
	quarters := startedIn(t, engine.Set{0: ^uint64(0)}, engine.Set{1: ^uint64(0)}, engine.Set{}, engine.Set{2: ^uint64(0), 3: ^uint64(0)})
	for name, want := range whole {
		equal(t, name+" after a start in halves", halves[name], want)
		equal(t, name+" after a start in quarters", quarters[name], want)
	}
}

// startedIn is what became of timers of all kinds after two starts in parts.
func startedIn(t *testing.T, parts ...engine.Set) (became map[string][]string) {
	became = map[string][]string{}
	bubble(t, func(t *testing.T, w *world) {
		defer scheduler.StartInParts(parts...)()
		w.config.MaxWaiting = 300
		w.start()
		time.Sleep(300 * time.Millisecond) // no call falls on a settle
		from := w.now()
		ids := map[string]engine.TimerID{}
		kinds := 0
		add := func(kind string, s engine.Schedule, r reply, opts ...func(*engine.Definition)) {
			kinds++ // each has a target of its own: which of its calls wait for a slow one of another kind is chance
			opts = append(opts, func(d *engine.Definition) { d.Callback.URL = fmt.Sprintf("http://127.0.0.1:%d/", kinds) })
			for i := range 6 { // in either part
				name := fmt.Sprint(kind, "-", i)
				w.behave(name, func(*call) reply { return r })
				ids[name] = w.make(timer(name, s, opts...))
			}
		}
		add("fast", every(700*time.Millisecond), ok)
		add("slow", every(5*time.Second), slow(1500*time.Millisecond))
		add("once", every(5*time.Second), slow(1500*time.Millisecond), atMostOnce)
		add("fails", every(20*time.Second), fail, retry(5, 3*time.Second, 2))
		// Not overlap skip: which of several late dues is called then is the first worker's to say.
		add("queue", every(2*time.Second), slow(3*time.Second), overlap(engine.OverlapQueue))
		for _, p := range []engine.MisfirePolicy{engine.MisfireSkip, engine.MisfireLatest, engine.MisfireAll} {
			add(fmt.Sprint("misfire-", p), every(7*time.Second), ok, misfire(p, time.Hour))
		}
		for _, at := range []time.Duration{50, 62, 66, 80, 130, 190} {
			add(fmt.Sprint("shot-", at), delay(at*time.Second), ok)
		}
		time.Sleep(61*time.Second + 37*time.Millisecond)
		w.crash(47 * time.Second)
		time.Sleep(30 * time.Second)
		w.step(-25 * time.Second)
		time.Sleep(2 * time.Second)
		w.crash(3 * time.Second)
		time.Sleep(70 * time.Second)
		for _, id := range ids {
			w.disable(id, 0)
		}
		time.Sleep(30 * time.Second)
		for name, id := range ids {
			became[name] = w.verdicts(id, from)
			var cs []string
			for _, c := range w.of(name) {
				cs = append(cs, fmt.Sprint(time.Duration(c.key.Due-from)*time.Millisecond, " called at ", stamp(c.at), ", attempt ", c.attempt, ", redelivered ", c.redelivered))
			}
			slices.Sort(cs)
			became[name] = append(became[name], cs...)
		}
	})
	return became
}

package scheduler

import (
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
)

// deaf is a journal that takes everything.
type deaf struct{ engine.Journal }

func (deaf) Begin(engine.Begun) engine.Position { return 0 }
func (deaf) Finish([]byte) engine.Position      { return 0 }

// With overlap queue the tasks of a timer run one after another in order of due, in
// whatever order the workers that took them from the queue come to begin them.
func TestOverlapQueueInOrderOfDue(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		e := New(Config{Journal: deaf{}, Log: slog.New(slog.DiscardHandler)})
		e.queue.Close() // this test is the workers
		def := &engine.Timer{Definition: engine.NewDefinition(), ID: 7, Version: 1, Generation: 1}
		def.App, def.Name, def.Schedule.Every, def.Overlap = "app", "a", time.Second, engine.OverlapQueue
		p, err := plan.Of(def)
		if err != nil {
			t.Fatal(err)
		}
		sh := e.shardOf(def.ID)
		lv := e.join(sh, def, &p)
		const tasks = 50
		now := e.now()
		next, running, ended := 0, (*task)(nil), 0
		var hands []*task // taken by workers, not begun
		last := int64(0)
		for ended < tasks {
			switch x := r.IntN(3); {
			case x == 0 && next < tasks:
				next++
				sh.mu.Lock()
				hands = append(hands, sh.enlist(lv, engine.Key{Timer: def.ID, Due: now - 1000 + int64(next)}, engine.FromSchedule, false, now))
				sh.mu.Unlock()
			case x == 1 && len(hands) > 0:
				i := r.IntN(len(hands))
				k := hands[i]
				hands = append(hands[:i], hands[i+1:]...)
				a, _, freed := e.begin(k, now, &body{})
				if freed != nil {
					hands = append(hands, freed)
				}
				if a == nil {
					continue
				}
				if running != nil || k.Key.Due <= last {
					t.Fatalf("seed %d: due %d began after %d, beside %v", seed, k.Key.Due-now, last-now, running)
				}
				running, last = k, k.Key.Due
			case x == 2 && running != nil:
				sh.mu.Lock()
				freed := e.conclude(sh, running, engine.Succeeded, "", now)
				sh.mu.Unlock()
				if freed != nil {
					hands = append(hands, freed)
				}
				running = nil
				ended++
			case next == tasks && len(hands) == 0 && running == nil:
				t.Fatalf("seed %d: %d of %d tasks ran, and nobody frees the rest", seed, ended, tasks)
			}
		}
	}
}

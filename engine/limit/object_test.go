package limit

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
	"xtimer/engine/object"
	"xtimer/tier/memory"
)

// A pause or a cooldown until an instant that is centuries away is in force: a Duration since 1970 ends in 2262.
func TestPausesOfCenturies(t *testing.T) {
	now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	const at = time.Hour
	for _, year := range []int{2027, 2100, 2261, 2262, 2318, 2319, 2400, 2700, 3000, 5000, 9999} {
		until := time.Date(year, 11, 28, 0, 0, 0, 0, time.UTC)
		x := Object{PausedUntil: until.UnixMilli(), CooldownUntil: until.UnixMilli()}
		want := flow.Never
		if year < 2262 {
			want = at + until.Sub(now)
		}
		if r := x.rule(now.UnixMilli(), at); r.Paused != want || r.Cooldown != want {
			t.Errorf("until %d: paused until %v, cooldown until %v, want %v", year, r.Paused, r.Cooldown, want)
		}
	}
}

// interrupted is a store that calls before once, when an object is about to be stored.
type interrupted struct {
	*memory.Cold
	before func()
}

func (s *interrupted) PutObjects(ctx context.Context, puts ...engine.ObjectPut) error {
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	return s.Cold.PutObjects(ctx, puts...)
}

// A limit is put while a pause is being stored, and both are in force then.
func TestALimitIsPutWhileAPauseIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &interrupted{Cold: memory.NewCold()}
		set := object.New(store, time.Now, slog.New(slog.DiscardHandler))
		if err := set.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		k, put := FlowKey("a", "k"), make(chan error, 1)
		store.before = func() {
			go func() {
				limit := Object{Limit: &flow.Limit{Rate: 7, Per: time.Second, Burst: 1}}
				_, _, err := set.Write(t.Context(), object.Write{Key: k, Body: limit.Body(), Keep: Keep})
				put <- err
			}()
			synctest.Wait()
		}
		var paused Object
		paused.Pause(Pause{Reason: "why"}, time.Now().UnixMilli())
		if _, _, err := set.Put(t.Context(), k, paused.Body(), nil); err != nil {
			t.Fatal(err)
		}
		if err := <-put; err != nil {
			t.Fatal(err)
		}
		if x, err := Read(set.Get(k)); err != nil || x.Limit == nil || x.Limit.Rate != 7 || x.Reason != "why" {
			t.Errorf("%+v (%v): a limit of 7 and a pause were put", x, err)
		}
	})
}

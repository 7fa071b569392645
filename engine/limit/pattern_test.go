package limit

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
	"xtimer/engine/object"
	"xtimer/tier/memory"
)

// What answers say of a key is what the queue has in force.
func TestInForceIsWhatTheRulesSay(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	name := func() string {
		return strings.Map(func(rune) rune { return rune("ab"[r.IntN(2)]) }, strings.Repeat("x", r.IntN(4)))
	}
	for range 200 {
		set := object.New(memory.NewCold(), func() time.Time { return now }, slog.New(slog.DiscardHandler))
		if err := set.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		var rules flow.Rules
		for i := range r.IntN(8) {
			var x Object
			if r.IntN(2) == 0 {
				x.Limit = &flow.Limit{Rate: i + 1, Per: time.Second, Burst: 1}
			}
			if r.IntN(2) == 0 {
				x.Pause(Pause{Until: now.UnixMilli() + int64(r.IntN(3)-1)*1000*int64(i+1), Reason: fmt.Sprint(i)}, now.UnixMilli()-int64(i))
			}
			if r.IntN(2) == 0 {
				x.CooldownUntil = now.UnixMilli() + int64(r.IntN(1000))
			}
			key := name() + "*"
			if r.IntN(3) == 0 {
				key = "a" + strings.TrimSuffix(key, "*")
			}
			k := FlowKey("app", key)
			if _, _, err := set.Put(t.Context(), k, x.Body(), nil); err != nil {
				t.Fatal(err)
			}
			rules.Set(NameOf(k), x.rule(now.UnixMilli(), 0))
		}
		k := FlowKey("app", "a"+name())
		o := set.Get(k)
		if o == nil {
			o = none(k)
		}
		x, pattern, err := InForce(set, o, now.UnixMilli())
		m := rules.Match(NameOf(k))
		if got := x.rule(now.UnixMilli(), 0); err != nil || got.Paused != m.Paused || got.Cooldown != m.Cooldown || (got.Limit == nil) != (m.Limit == nil) || m.Limit != nil && *got.Limit != *m.Limit {
			t.Fatalf("seed %d: %s: %+v, want %+v, %v", seed, k.Name, got, m, err)
		}
		if p := set.Get(FlowKey("app", pattern)); pattern != "" && (p == nil || !strings.HasPrefix(k.Name, strings.TrimSuffix(pattern, "*"))) {
			t.Errorf("seed %d: %s has the limit of %q", seed, k.Name, pattern)
		}
		if is := len(Undefined(set, "app", engine.FlowOf([]string{k.Name}))) == 0; is != (m.Limit != nil) {
			t.Errorf("seed %d: %s is undefined, and has %+v", seed, k.Name, m.Limit)
		}
		if stands := OfPattern(set, k) != nil || set.Get(k) != nil; !stands && m != (flow.Rule{}) {
			t.Errorf("seed %d: nothing is said of %s, and %+v counts", seed, k.Name, m)
		}
	}
}

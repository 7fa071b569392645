package limit

import (
	"testing"
	"time"

	"xtimer/engine/flow"
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

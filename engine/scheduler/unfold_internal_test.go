package scheduler

import (
	"context"
	"testing"

	"xtimer/engine"
)

// storedRows is a cold tier that has rows.
type storedRows struct {
	engine.Cold
	rows []engine.Owed
}

func (s storedRows) OwedPage(context.Context, engine.TimerID, int64, int) ([]engine.Owed, error) {
	return s.rows, nil
}

// A range waits for earlier ranges, and for rows with an earlier place that are not in memory. A
// task that is tried again by hand has an earlier due and a later place. With overlap queue it
// waits for the range, so the range does not wait for it.
func TestRowsThatARangeWaitsFor(t *testing.T) {
	const generation = 2
	row := func(due, notBefore, to int64, generation uint32) engine.Owed {
		return engine.Owed{Key: engine.Key{Timer: 1, Due: due}, NotBefore: notBefore, To: to, Generation: generation}
	}
	o := row(3000, 3000, 9000, generation)
	for _, c := range []struct {
		name  string
		row   engine.Owed
		waits bool
	}{
		{"an earlier due", row(2000, 2000, 0, generation), true},
		{"an earlier due of a former generation", row(2000, 2000, 0, generation-1), false},
		{"an earlier due that is tried again later", row(2000, 5000, 0, generation), false},
		{"an earlier range", row(1000, 1000, 2000, generation), true},
		{"the range itself", o, false},
		{"a later due", row(10_000, 1000, 0, generation), false},
	} {
		e := New(Config{Cold: storedRows{rows: []engine.Owed{c.row}}})
		u := &unfolding{e: e}
		if got, err := u.isLater(t.Context(), o); got != c.waits || err != nil {
			t.Errorf("%s: the range waits: %v (%v)", c.name, got, err)
		}
	}
}

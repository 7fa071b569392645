package inspect

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"xtimer/engine"
)

// Coming is what is due in one minute of the coming hour: the first due that
// each timer has in it.
type Coming struct {
	Minute  int64     // its begin, Unix ms
	Seconds [60]int64 // how many, by second
	Dues    []ComingDue
	// Partial: there are more than were looked at, or named.
	Partial bool
}

// ComingDue is one of them.
type ComingDue struct {
	Key       engine.Key
	App, Name string
}

// definitionsAtOnce is how many definitions a look has in memory: each may have a body
// of 512 KiB.
const definitionsAtOnce = 32

// maxComing bounds the entries that a look at one minute takes.
const maxComing = 20_000

var errEnough = errors.New("enough was seen")

// Coming looks at the minute that an instant lies in, and names the first
// limit dues of an app ("": of all) in their order.
func (r *Reader) Coming(ctx context.Context, at int64, app string, limit int) (Coming, error) {
	now := r.now()
	c := Coming{Minute: at / minute * minute}
	end := c.Minute + minute
	if end <= now || c.Minute >= now+r.cfg.Window.Milliseconds() {
		return c, engine.Invalid("at", "out_of_range", "must lie within the coming %v", r.cfg.Window)
	}
	es, partial, err := r.comingEntries(ctx, c.Minute, end, app)
	if err != nil {
		return c, err
	}
	c.Partial = partial
	slices.SortFunc(es, func(a, b engine.Entry) int { return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID)) })
	es = slices.CompactFunc(es, func(a, b engine.Entry) bool { return a.ID == b.ID && a.Due == b.Due })
	for _, x := range es {
		if app == "" {
			c.Seconds[(x.Due-c.Minute)/1000]++
		}
	}
	for len(es) > 0 {
		n := min(len(es), definitionsAtOnce)
		ids := make([]engine.TimerID, n)
		for i := range ids {
			ids[i] = es[i].ID
		}
		ts, _, err := r.Definitions(ctx, ids)
		if err != nil {
			return c, err
		}
		for i, x := range es[:n] {
			t := ts[i]
			if t == nil || t.Status != engine.Enabled || app != "" && t.App != app {
				continue
			}
			if app != "" {
				c.Seconds[(x.Due-c.Minute)/1000]++
			}
			if len(c.Dues) == limit {
				c.Partial = true
				if app == "" {
					return c, nil
				}
				continue
			}
			c.Dues = append(c.Dues, ComingDue{engine.Key{Timer: x.ID, Due: x.Due}, t.App, t.Name})
		}
		es = es[n:]
	}
	return c, nil
}

// comingEntries are the timers that are due in a minute: from the roster when
// it is loaded, and then of the app alone; else from the warm tier.
func (r *Reader) comingEntries(ctx context.Context, from, end int64, app string) (es []engine.Entry, partial bool, err error) {
	if end <= r.memory.Loaded.Load() {
		es = r.memory.Coming(from, end, app, maxComing)
		if partial = len(es) > maxComing; partial {
			es = es[:maxComing]
		}
		return es, partial, nil
	}
	err = r.cfg.Warm.Load(ctx, r.memory.Owned(), from, func(page []engine.Entry) error {
		for _, x := range page {
			if len(es) == maxComing {
				return errEnough
			}
			es = append(es, engine.Entry{ID: x.ID, Due: x.Due})
		}
		return nil
	})
	switch {
	case errors.Is(err, errEnough), errors.Is(err, engine.ErrGap):
		return es, true, nil
	default:
		return es, false, err
	}
}

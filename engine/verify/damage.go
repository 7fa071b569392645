package verify

import (
	"context"

	"xtimer/engine"
)

// damaged tells of a record that cannot be read, on which a page of history has failed:
// it is past it that reading goes on. All other errors are returned.
func (g *ledger) damaged(ctx context.Context, before, next engine.Key, err error) (engine.Key, error) {
	if d := engine.DamagedRecord(err, before); d != nil {
		return d.Key, g.tellDamage(ctx, d)
	}
	return next, err
}

// tellDamage tells of a damaged row, of an app that was asked for.
func (g *ledger) tellDamage(ctx context.Context, d *engine.Damage) error {
	f := Finding{Kind: Damaged, Timer: d.Key.Timer, Due: d.Key.Due, DueLast: d.Key.Due, Count: 1, Detail: d.Error()}
	if t, err := g.cold.Timer(ctx, d.Key.Timer); err == nil {
		f.App, f.Name = t.App, t.Name
	}
	if g.App != "" && f.App != g.App {
		return nil
	}
	g.sum.Found[f.Kind]++
	return g.tell(&f)
}

package tiertest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"xtimer/engine"
)

// Dump writes out all that a cold tier promises to hold, in one order, so that
// two tiers, or one before and after a crash, can be held against each other.
// Recurring timers that are due are left out: their bounds are hints.
func Dump(t testing.TB, c engine.Cold, ids []engine.TimerID) (string, error) {
	d := &dump{Cold: c, ctx: t.Context()}
	for _, part := range []func() error{
		d.counts, d.timers, func() error { return d.each(ids) }, d.lives, d.owed, d.due, d.history, d.shards,
	} {
		if err := part(); err != nil {
			return "", err
		}
	}
	return d.out.String(), nil
}

type dump struct {
	engine.Cold
	ctx context.Context
	out strings.Builder
}

func (d *dump) line(format string, args ...any) { fmt.Fprintf(&d.out, format+"\n", args...) }

// lines writes lines that a tier tells in any order.
func (d *dump) lines(list []string) {
	slices.Sort(list)
	for _, l := range list {
		d.line("%s", l)
	}
}

func (d *dump) counts() error {
	counts, err := d.Counts(d.ctx)
	d.line("counts %+v", counts)
	return err
}

func (d *dump) timers() error {
	lines := map[string]bool{}
	for cursor := ""; ; {
		ts, next, err := d.Timers(d.ctx, engine.TimerFilter{}, cursor, 100)
		if err != nil {
			return err
		}
		for _, t := range ts {
			lines[fmt.Sprintf("timer %020d %x", t.ID, engine.AppendTimer(nil, t))] = true
			if t.Name == "" {
				continue
			}
			if n, err := d.TimerByName(d.ctx, t.App, t.Name); err != nil || n.ID != t.ID {
				return fmt.Errorf("the name of timer %d leads to %v: %w", t.ID, n, err)
			}
		}
		if cursor = next; next == "" {
			d.lines(slices.Collect(maps.Keys(lines)))
			return nil
		}
	}
}

// each writes what is kept of timers, deleted ones as well.
func (d *dump) each(ids []engine.TimerID) error {
	for _, id := range ids {
		vs, err := d.Versions(d.ctx, id, 0, 100)
		if err != nil {
			return err
		}
		for _, v := range vs {
			d.line("version %x", engine.AppendTimer(nil, v))
		}
		rows, err := d.OwedPage(d.ctx, id, -1, 1<<20)
		if err != nil {
			return err
		}
		for _, o := range rows {
			d.line("owed %x", engine.AppendOwed(nil, &o))
		}
		if last, err := d.LastTask(d.ctx, id); err == nil {
			d.line("last %v", last.Key)
		}
	}
	return nil
}

func (d *dump) lives() error {
	lives, err := d.Lives(d.ctx, 0, 1000)
	for _, l := range lives {
		d.line("life %d, %d versions, deleted %d", l.ID, len(l.Versions), l.Deleted)
	}
	return err
}

// owed writes the rows as they are found by time, and by lane.
func (d *dump) owed() error {
	var rows []string
	err := d.Owed(d.ctx, engine.AllShards, 0, engine.MaxDue, func(page []engine.Owed) error {
		for _, o := range page {
			rows = append(rows, fmt.Sprintf("by time %v %d", o.Key, o.NotBefore))
		}
		return nil
	})
	if err != nil {
		return err
	}
	lanes, err := d.Lanes(d.ctx, engine.AllShards, engine.MaxDue)
	if err != nil {
		return err
	}
	for _, lane := range lanes {
		os, err := d.OwedIn(d.ctx, engine.AllShards, lane, engine.Place{}, engine.MaxDue, 1000)
		if err != nil {
			return err
		}
		for _, o := range os {
			rows = append(rows, fmt.Sprintf("in lane %d %v %d", lane, o.Key, o.NotBefore))
		}
	}
	d.lines(rows)
	return nil
}

// due writes the dues of one-shots.
func (d *dump) due() error {
	var shots []string
	err := d.Due(d.ctx, engine.AllShards, 0, engine.MaxDue, func(page []engine.Candidate) error {
		for _, c := range page {
			if c.Definition != nil {
				if t, err := engine.DecodeTimer(slices.Clone(c.Definition)); err != nil || !t.Schedule.OneShot() {
					continue
				}
			}
			shots = append(shots, fmt.Sprintf("due %d %d", c.ID, c.Due))
		}
		return nil
	})
	d.lines(shots)
	return err
}

// history writes the records as they are found in all, by status, and as misfires.
func (d *dump) history() error {
	for _, f := range []engine.TaskFilter{{}, {Statuses: []engine.TaskStatus{engine.Failed, engine.Dead, engine.Unknown, engine.Missed}}, {Misfires: true}} {
		for before := (engine.Key{}); ; {
			ts, next, err := d.Tasks(d.ctx, f, before, 50)
			if err != nil {
				return err
			}
			for _, t := range ts {
				d.line("task %x", engine.AppendTask(nil, t))
			}
			if before = next; next == (engine.Key{}) {
				break
			}
		}
	}
	return nil
}

func (d *dump) shards() error {
	shards, err := d.Shards(d.ctx)
	for i, sh := range shards {
		if i == 0 || sh != shards[i-1] { // and so up to the next
			d.line("shard %d %+v", i, sh)
		}
	}
	return err
}

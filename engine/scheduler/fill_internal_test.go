package scheduler

import (
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/resident"
)

// The index's bound of a calendar leaves room for a time zone database that brings
// the due nearer, and is written once a due all the same.
func TestBoundLeavesRoomForZones(t *testing.T) {
	const h = 60 * minute
	day := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC).UnixMilli()
	for _, c := range []struct {
		name      string
		schedule  engine.Schedule
		due, room int64 // ms of the day
	}{
		{"without a zone", engine.Schedule{Cron: "0 9 * * *"}, 9 * h, 0},
		{"UTC", engine.Schedule{Cron: "0 9 * * *", TimeZone: "UTC"}, 9 * h, 0},
		{"Shanghai", engine.Schedule{Cron: "0 9 * * *", TimeZone: "Asia/Shanghai"}, 1 * h, 4 * h},
		{"an interval", engine.Schedule{Every: 24 * time.Hour}, 9 * h, 0},
	} {
		x := &engine.Timer{Definition: engine.NewDefinition(), ID: 1, Version: 1, Generation: 1, ValidFrom: day, Anchor: day + 9*h}
		x.Schedule = c.schedule
		p, err := plan.Of(x)
		if err != nil {
			t.Fatal(err)
		}
		e := &Scheduler{memory: resident.New(resident.Config{Owned: engine.AllShards})}
		was, written := day, 0
		for now := day; now <= day+10*24*h; now += h {
			e.memory.Mark(x.ID.Shard(), now, now, false)
			b, ok := e.bound(x, &p, was)
			if !ok {
				continue
			}
			due, _ := p.Next(now)
			if b.Due != due-c.room || (due-day)%(24*h) != c.due {
				t.Errorf("%s: a bound of %v before the due at %v of the day", c.name, time.Duration(due-b.Due)*time.Millisecond, time.Duration(c.due)*time.Millisecond)
			}
			was, written = b.Due, written+1
		}
		if written < 10 || written > 11 {
			t.Errorf("%s: %d writes in ten days", c.name, written)
		}
	}
}

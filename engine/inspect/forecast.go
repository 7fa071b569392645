package inspect

import (
	"strings"

	"xtimer/engine"
	"xtimer/engine/plan"
)

// forecaster counts dues by hour.
type forecaster struct {
	from, to int64 // dues in (from, to]
	hours    [countedHours + 1]int64
	known    map[calendar]*[countedHours]int64
}

// calendar is a cron expression whose dues are the same for every timer that has it.
type calendar struct{ cron, zone string }

// knownCalendars bounds what is remembered: 1.4 KB each.
const knownCalendars = 1000

// counted is what one timer adds to a census.
type counted struct {
	status engine.Status
	dues   []int64             // by hour; nil: none
	own    [countedHours]int64 // where dues lie that no other timer has
}

func newForecaster(from int64) *forecaster {
	f := &forecaster{from: from, known: map[calendar]*[countedHours]int64{}}
	for i := range f.hours {
		f.hours[i] = (from/hour+int64(i))*hour - 1 // a due at the full hour is of that hour
	}
	f.hours[0] = from
	f.to = f.hours[countedHours]
	return f
}

// count counts one timer into x. One whose plan cannot be made has no dues.
func (f *forecaster) count(t *engine.Timer, x *counted) {
	x.status, x.dues = t.StatusAt(f.from, true), nil
	if t.Status != engine.Enabled {
		return
	}
	p, err := plan.Of(t)
	if err != nil {
		return
	}
	first, last, n := p.Run(f.from, f.to)
	switch {
	case n == 0:
	case n <= countedHours: // few: one after the other
		clear(x.own[:])
		x.dues = x.own[:]
		for due, ok := first, true; ok && due <= last; due, ok = p.Next(due) {
			x.dues[due/hour-f.from/hour]++
		}
	default:
		f.byHour(t, &p, x)
	}
}

// byHour counts a timer that is due often.
func (f *forecaster) byHour(t *engine.Timer, p *plan.Plan, x *counted) {
	s := &t.Schedule
	key := calendar{s.Cron, s.TimeZone}
	shared := s.Cron != "" && !strings.HasPrefix(strings.ToLower(s.Cron), "@every") && s.StartAt == 0 && s.EndAt == 0 && s.MaxRuns == 0 && s.Jitter == 0 && t.ValidFrom <= f.from
	if shared {
		if dues := f.known[key]; dues != nil {
			x.dues = dues[:]
			return
		}
	}
	for i := range x.own {
		x.own[i] = p.Count(f.hours[i], f.hours[i+1])
	}
	x.dues = x.own[:]
	if shared && len(f.known) < knownCalendars {
		dues := x.own
		f.known[calendar{strings.Clone(s.Cron), strings.Clone(s.TimeZone)}] = &dues
	}
}

package plan

import (
	"time"

	"xtimer/engine"
)

// Limits of a schedule.
const (
	minEvery  = 10 * time.Millisecond
	maxEvery  = 366 * 24 * time.Hour
	maxJitter = 24 * time.Hour
	maxRuns   = 1_000_000_000
	// cronSteps and cronAhead bound the work of counting the runs of a calendar:
	// about as many days on which it is due, within as many ms.
	cronSteps       = 10_000
	cronAhead int64 = 200 * 366 * 24 * 3_600_000
	// earliest is 2020-01-01: no schedule is asked about the time before.
	earliest int64 = 1577836800000
)

// interval is the interval of an "every" schedule, also if it is written as a
// cron spec "@every 5m".
func interval(s *engine.Schedule) (every time.Duration, is bool, err error) {
	if s.Every != 0 {
		return s.Every, true, nil
	}
	return parseEvery(s.Cron)
}

func everyTooShort(s *engine.Schedule) *engine.Fault {
	field := "schedule.every"
	if s.Every == 0 {
		field = "schedule.cron"
	}
	return engine.Invalid(field, "every_too_short", "the interval must be at least %v", minEvery)
}

// calendarFault names the field that keeps a calendar from being made.
func calendarFault(s *engine.Schedule, err error) *engine.Fault {
	if _, zoneErr := zoneOf(s.TimeZone); zoneErr != nil {
		return engine.Invalid("schedule.time_zone", "invalid_time_zone", "%v", zoneErr)
	}
	return engine.Invalid("schedule.cron", "invalid_cron", "%v", err)
}

// NewTimer is the first version of a timer that is created at now; the definition is
// valid. It returns a *Fault for a schedule without a future due.
func NewTimer(d *engine.Definition, id engine.TimerID, now int64) (*engine.Timer, error) {
	t := &engine.Timer{Definition: *d, ID: id, Version: 1, Generation: 1, CreatedAt: now, UpdatedAt: now}
	return t, Resolve(t, nil, now)
}

// Resolve makes the stored timer of a definition that was created, changed or
// enabled at now: it sets ValidFrom, At, Anchor and LastDue. ID and CreatedAt
// are set before, and the definition is valid. prev is the former version, nil
// for a new timer and for one that is to be armed anew.
//
//   - ValidFrom is now: nothing that passed before comes back.
//   - At of a delay is counted from now, unless the schedule is the former one.
//   - Anchor is StartAt, else CreatedAt.
//   - MaxRuns counts the dues after now, and EndAt the nominals up to it; the
//     last that both leave becomes LastDue. A one-shot's LastDue is its due.
//
// Resolve returns a *Fault for a schedule without a future due, unless the schedule
// is unchanged: enabling a timer whose schedule has ended is valid and finishes it.
func Resolve(t *engine.Timer, prev *engine.Timer, now int64) error {
	s := &t.Schedule
	same := prev != nil && prev.Schedule == *s
	t.ValidFrom, t.At, t.Anchor, t.LastDue = now, 0, 0, 0
	if s.OneShot() {
		return resolveOnce(t, prev, same, now)
	}
	if t.Anchor = s.StartAt; t.Anchor == 0 {
		if t.Anchor = t.CreatedAt; t.Anchor == 0 {
			t.Anchor = now
		}
	}
	p, err := Of(t)
	if err != nil {
		return err
	}
	if p.cal != nil && p.cal.next(max(now, earliest)) == never {
		return engine.Invalid("schedule.cron", "unsatisfiable_cron", "%q has no due within the coming years: no such date exists", s.Cron)
	}
	if s.EndAt != 0 {
		if t.LastDue, err = p.lastBefore(s, same); err != nil {
			return err
		}
		p.last = t.LastDue
	}
	first, ok := p.Next(now)
	if !ok {
		if same {
			return nil
		}
		if s.EndAt != 0 {
			return engine.Invalid("schedule.end_at", "never_due", "nothing is due from %s to %s", engine.FormatInstant(now), engine.FormatInstant(s.EndAt))
		}
		return engine.Invalid("schedule", "never_due", "nothing is due until the year 9999")
	}
	if s.MaxRuns != 0 {
		last, ok := p.run(first, s.MaxRuns)
		if !ok {
			return engine.Invalid("schedule.max_runs", "max_runs_too_large",
				"the runs of a calendar are counted over 200 years and about %d days on which it is due; use end_at or every instead", cronSteps)
		}
		if last <= p.last && last != never {
			t.LastDue = last
		}
	}
	return nil
}

func resolveOnce(t *engine.Timer, prev *engine.Timer, same bool, now int64) error {
	s := &t.Schedule
	switch {
	case s.At != 0:
		t.At = s.At
	case same && prev.At != 0:
		t.At = prev.At
	default:
		t.At = now + s.Delay.Milliseconds()
	}
	window := t.Misfire.Window.Milliseconds()
	switch {
	case t.At > engine.MaxDue-s.Jitter.Milliseconds():
		return engine.Invalid("schedule", "too_far", "it is due after the year 9999")
	case !same && t.At < now-window:
		return engine.Invalid("schedule.at", "at_too_old", "%s is more than the misfire window of %v ago", engine.FormatInstant(t.At), t.Misfire.Window)
	}
	p, err := Of(t)
	t.LastDue = p.dueOf(p.start)
	return err
}

// lastBefore is the last due that EndAt leaves. If that is none, it is EndAt
// itself for a timer that was there before.
func (p *Plan) lastBefore(s *engine.Schedule, same bool) (int64, error) {
	n := p.lastNominal(s.EndAt)
	if n == never {
		if same {
			return s.EndAt, nil
		}
		return 0, engine.Invalid("schedule.end_at", "never_due", "nothing is due until %s", engine.FormatInstant(s.EndAt))
	}
	return p.dueOf(n), nil
}

// run is the n-th due, counted from first as the 1st, or never if there are not
// as many; ok is false if a calendar would have to be walked for too long.
func (p *Plan) run(first, n int64) (due int64, ok bool) {
	k := p.nominalOf(first)
	if p.cal == nil {
		if n-1 > (engine.MaxDue-k)/p.every {
			return never, true
		}
		return p.dueOf(k + (n-1)*p.every), true
	}
	end := min(p.last, k+cronAhead)
	last, count, ok := p.cal.walk(k-1, end, n, cronSteps)
	if !ok || count < n {
		return never, ok && end == p.last
	}
	return p.dueOf(last), true
}

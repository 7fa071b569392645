package alert

import (
	"context"
	"time"

	"xtimer/engine"
)

// What a rule counts is not stored: a process that begins to judge finds it in history, the
// failures within a time when it starts, and a streak with the next failure of its timer.

// longest is the longest time in which some rule counts failures.
func (j *judge) longest() (longest time.Duration) {
	for _, list := range j.rules {
		for _, r := range list {
			if r.After > 1 && r.Streak == 0 {
				longest = max(longest, r.Within)
			}
		}
	}
	return longest
}

// remember counts a failure that a former process judged, unless that counted it in an incident.
func (j *judge) remember(ev *event, t *engine.Timer) {
	for _, app := range [...]string{ev.App, "*"} {
		for _, r := range j.rules[app] {
			if r.After < 2 || r.Streak > 0 || !r.wants(ev) || !r.Match.matches(ev.Name, t) {
				continue
			}
			if g := j.group(r, ev, t); g.open == nil && ev.Ended > j.judged[g.key()] {
				g.count(ev)
			}
		}
	}
}

// stored notes what a former process has judged of an incident: it may have been killed after it
// stored the incident, and before it stored the cursor.
func (j *judge) stored(i *Incident) {
	for _, r := range j.rules[i.RuleApp] {
		if r.name == i.Rule {
			key := r.keyOf(i)
			j.judged[key] = max(j.judged[key], i.Last, i.Closed)
		}
	}
}

// newStreaks are the rules that count the streak of an event's timer and know nothing of it.
func (j *judge) newStreaks(ev *event, t *engine.Timer) (rules []*ruleAt) {
	for _, app := range [...]string{ev.App, "*"} {
		for _, r := range j.rules[app] {
			if r.Streak == 0 || !r.wants(ev) || !r.Match.matches(ev.Name, t) {
				continue
			}
			key := streakKey(r, ev)
			if _, known := j.streaks[key]; !known && j.groups[key] == nil {
				rules = append(rules, r)
			}
		}
	}
	return rules
}

func streakKey(r *ruleAt, ev *event) groupKey { return r.key(ev.App, ev.by(), ev.Key.Timer) }

// mostOfStreak is how many records of a timer are looked at for its streak.
const mostOfStreak = 2000

// readStreaks reads from history how often timers failed in a row before events, where no
// process has counted it. It reports whether history could be read.
func (a *Alerter) readStreaks(ctx context.Context, events []event, timers map[engine.TimerID]*engine.Timer) bool {
	for i := range events {
		ev := &events[i]
		if ev.Status == engine.Succeeded || ev.Status == firstAttempt {
			continue
		}
		a.mu.Lock()
		rules := a.judge.newStreaks(ev, timers[ev.Key.Timer])
		a.mu.Unlock()
		if rules == nil {
			continue
		}
		before, err := a.before(ctx, ev.Key, rules)
		if err != nil {
			a.cannotRead(ctx, err)
			return false
		}
		a.mu.Lock()
		for i, r := range rules {
			a.judge.streaks[streakKey(r, ev)] = before[i]
		}
		a.mu.Unlock()
	}
	return true
}

// readBreaks finds the failures before which their timers have succeeded since the failure
// before, where a streak is counted: history was asked for failures only. It reports whether
// history could be read.
func (a *Alerter) readBreaks(ctx context.Context, events []event, timers map[engine.TimerID]*engine.Timer) bool {
	last := map[engine.TimerID]int64{} // the due of the last failure
	for i := range events {
		ev := &events[i]
		a.mu.Lock()
		counts, due := a.judge.counts(ev, timers[ev.Key.Timer])
		a.mu.Unlock()
		if !counts {
			continue
		}
		due = max(due, last[ev.Key.Timer])
		last[ev.Key.Timer] = ev.Key.Due
		if due == 0 {
			continue // readStreaks has read it
		}
		is, err := a.succeededBetween(ctx, ev.Key.Timer, due, ev.Key.Due)
		if err != nil {
			a.cannotRead(ctx, err)
			return false
		}
		if is {
			a.mu.Lock()
			a.judge.breaks[ev.Key] = true
			a.mu.Unlock()
		}
	}
	return true
}

// counts reports whether a rule counts an event in a streak, and the due of the last failure that
// was counted there.
func (j *judge) counts(ev *event, t *engine.Timer) (is bool, last int64) {
	for _, app := range [...]string{ev.App, "*"} {
		for _, r := range j.rules[app] {
			if r.Streak == 0 || !r.wants(ev) || !r.Match.matches(ev.Name, t) {
				continue
			}
			is = true
			if g := j.groups[streakKey(r, ev)]; g != nil {
				last = max(last, g.last.Due)
			}
		}
	}
	return is, last
}

// succeededBetween reports whether a timer succeeded with a due between two others.
func (a *Alerter) succeededBetween(ctx context.Context, id engine.TimerID, after, before int64) (bool, error) {
	if before-after < 2 {
		return false, nil
	}
	f := engine.TaskFilter{Timer: id, From: after + 1, To: before, Statuses: []engine.TaskStatus{engine.Succeeded}}
	page, _, err := a.cfg.Cold.Tasks(ctx, f, engine.Key{}, 1)
	return len(page) > 0, unavailable(err)
}

// before is how often a timer failed in a row before a task, as each of some rules counts. It looks no
// further back than their streaks reach with the task itself: a timer may never have succeeded, and while
// the judge is full each failure is asked about.
func (a *Alerter) before(ctx context.Context, k engine.Key, rules []*ruleAt) (counts []int, err error) {
	counts = make([]int, len(rules))
	for looked := 0; looked < mostOfStreak; looked += 20 {
		page, next, err := a.cfg.Cold.Tasks(ctx, engine.TaskFilter{Timer: k.Timer}, k, 20)
		if d := engine.DamagedRecord(err, k); d != nil {
			next, err = d.Key, nil
		}
		if err != nil {
			return counts, unavailable(err)
		}
		for _, t := range page {
			if t.Status == engine.Succeeded || addToStreaks(counts, rules, t) {
				return counts, nil
			}
		}
		if k = next; next == (engine.Key{}) {
			break
		}
	}
	return counts, nil
}

// addToStreaks counts a record for each rule that lacks failures, and reports whether every rule has enough: one
// more failure completes each streak.
func addToStreaks(counts []int, rules []*ruleAt, t *engine.Task) (enough bool) {
	enough = true
	for i, r := range rules {
		if counts[i] < r.Streak-1 && r.on.has(countsAs(t)) {
			counts[i] += int(max(t.Count, 1))
		}
		enough = enough && counts[i] >= r.Streak-1
	}
	return enough
}

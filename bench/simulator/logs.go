package simulator

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"xtimer/bench/checker"
	"xtimer/engine"
)

// check has the checker judge what was called and recorded.
func (m *machine) check(timers map[engine.TimerID]*timer, upTo int64) {
	l := m.logs(timers, upTo)
	var known []*checker.Timer
	for _, t := range timers {
		if len(t.versions) > 0 {
			known = append(known, t.known())
		}
	}
	r, err := checker.Judge(l, known)
	if err != nil {
		m.wrong("it cannot be judged: %v", err)
		return
	}
	for _, v := range r.Violations {
		if m.clocks && v.Rule == "L2" {
			continue // see fleet.holdArrival
		}
		if m.wasSet && strings.HasSuffix(v.Detail, "is not marked") {
			continue // see fleet.holdOneCaller
		}
		if m.goneBack && (v.Rule == "L8" || strings.HasSuffix(v.Detail, "is not marked")) {
			continue // see fleet.holdRepeats and fleet.holdOneCaller
		}
		m.wrong("%s: %s", v.Rule, v.Detail)
	}
}

// milli and micro are an instant of the run as logs have it: as the clock would have shown it
// that nobody set.
func (m *machine) milli(at time.Duration) int64 { return m.begin.Add(at).UnixMilli() }

func (m *machine) micro(at time.Duration) int64 { return m.begin.Add(at).UnixMicro() }

// logs are what happened in a run.
func (m *machine) logs(timers map[engine.TimerID]*timer, upTo int64) *checker.Logs {
	l := &checker.Logs{Asked: []checker.Asked{{Op: checker.Run, Conditions: m.conditions(upTo)}}}
	for _, c := range m.calls {
		if t := timers[c.key.Timer]; t == nil || len(t.versions) == 0 {
			continue // see sortCalls
		}
		a := checker.Arrived{
			Timer: c.key.Timer.String(), Due: c.key.Due, App: c.app, Name: c.name, Attempt: c.attempt, Redelivered: c.redelivered,
			At: m.micro(c.at), Code: c.answer.code, Begun: m.micro(c.asked), Life: c.life, Generation: c.generation,
		}
		if c.ended != 0 {
			a.Done = m.micro(c.ended)
		}
		l.Arrived = append(l.Arrived, a)
	}
	for _, x := range m.ended {
		b := checker.Broken{Fault: checker.Terminate, From: m.milli(x.at), To: m.milli(m.since()), Life: x.life}
		if x.crashed || x.failed {
			b.Fault = checker.Kill
		}
		if x.upWall != 0 {
			b.To = m.milli(x.up)
		}
		l.Broken = append(l.Broken, b)
	}
	for _, k := range m.looks {
		l.Broken = append(l.Broken, checker.Broken{Fault: checker.Start, From: m.milli(k.at), To: m.milli(k.at), Looked: k.wall})
	}
	for _, s := range m.steps {
		l.Broken = append(l.Broken, checker.Broken{Fault: checker.Clock, From: m.milli(s.at), To: m.milli(s.at), By: s.to - s.from})
	}
	l.Broken = append(l.Broken, m.others...)
	l.Asked = append(l.Asked, m.rules()...)
	return l
}

// conditions say how a run is to be judged.
func (m *machine) conditions(upTo int64) *checker.Condition {
	c := &checker.Condition{
		Ended: upTo, InCall: math.MaxInt32, Recover: math.MaxInt32, Unsynced: m.unsynced().Milliseconds(),
		OnTheWay: (m.unsynced() + m.stood + slowDial).Milliseconds(),
	}
	if slices.ContainsFunc(m.script.Steps, func(s Step) bool { return s.Kind == Slow || s.Kind == Stall }) {
		c.Waits = c.Unsynced
	}
	if m.script.Settings.Workers >= 8 && len(m.steps) == 0 { // then nothing ails the machine in the end
		c.Settled, c.Calm, c.Max = m.milli(m.calmAt+30*time.Second), 1, 100_000
	}
	return c
}

// unsynced is how long an answer may take to the disk.
func (m *machine) unsynced() time.Duration {
	d := 100*time.Millisecond + 4*m.script.Pace
	for _, s := range m.script.Steps {
		if s.Kind == Slow || s.Kind == Stall {
			d = max(d, 4*s.By+100*time.Millisecond)
		}
	}
	return d
}

// known is a timer as the checker takes it: from the store, which knows what became of
// requests that nobody answered.
func (t *timer) known() *checker.Timer {
	k := &checker.Timer{ID: t.id.String(), App: t.versions[0].App, Name: t.name()}
	for _, v := range t.versions {
		k.Definitions = append(k.Definitions, definitionOf(v.Timer))
	}
	var eras []*checker.Era
	for _, e := range t.eras {
		eras = append(eras, &checker.Era{Generation: e.first.Generation, From: e.first.ValidFrom, Over: e.end != nil})
	}
	dues := maps.Clone(t.must)
	for due := range t.calls {
		if t.asked(due) {
			dues[due] = t.must[due]
		}
	}
	for _, r := range t.records {
		dues[r.Key.Due] = t.must[r.Key.Due]
		k.Finals = append(k.Finals, &checker.Final{
			Due: r.Key.Due, DueLast: r.DueLast, Status: r.Status.String(), Reason: r.Reason, Attempts: r.LastAttempt(), Base: r.Base,
			Since: r.Since, Ended: r.Ended, Generation: r.Generation,
		})
	}
	again := 0
	for _, r := range t.unsure {
		if r.Kind == Retry {
			again++
		}
	}
	doubtful := !t.all(func(v version) bool { return v.by != nil && v.by.state == done })
	for due, must := range dues {
		k.Dues = append(k.Dues, &checker.Due{
			At: due, Eras: eras, Must: must, Redriven: t.redriven[due] + again, Unreached: slices.Contains(t.refused, due),
			Doubtful: doubtful || t.doubtfulRun(due),
		})
	}
	return k
}

func definitionOf(t *engine.Timer) *checker.Definition {
	return &checker.Definition{
		Schedule: scheduleOf(t), Delivery: t.Delivery.String(), Overlap: t.Overlap.String(), Misfire: t.Misfire.Policy.String(),
		MisfireWindow: t.Misfire.Window.Milliseconds(), StaleAfter: t.StaleAfter.Milliseconds(), Flow: string(t.Flow),
		Retry: checker.Retry{
			MaxAttempts: t.Retry.MaxAttempts, Backoff: t.Retry.Backoff.Milliseconds(), Multiplier: t.Retry.Multiplier,
			MaxBackoff: t.Retry.MaxBackoff.Milliseconds(), Jitter: t.Retry.Jitter, MaxAge: t.Retry.MaxAge.Milliseconds(),
		},
	}
}

func scheduleOf(t *engine.Timer) checker.Schedule {
	s := t.Schedule
	c := checker.Schedule{
		Cron: s.Cron, TimeZone: s.TimeZone, Every: s.Every.Milliseconds(), At: s.At, MaxRuns: s.MaxRuns, StartAt: s.StartAt, EndAt: s.EndAt,
	}
	if s.HasDelay {
		c.At = t.At
	}
	return c
}

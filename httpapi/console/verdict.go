package console

import (
	"xtimer/httpapi/client"
	"xtimer/httpapi/console/words"
)

// The bounds of the verdict on the overview: beyond them the service is not on time.
const (
	lateCalls   = 100.0  // ms: p99 of the lateness in the last minute
	lateTask    = 1000.0 // ms: the age of the oldest overdue task
	manyResults = 10_000 // results that wait to be stored
	recently    = 10     // minutes in which failures count
	verdictGood = "good" // on time
	verdictNone = "none" // nothing to judge by
	verdictBad  = "bad"  // a person should look
)

// verdict is what the overview says of the service: every fault there is, or that
// there is none.
type verdict struct {
	Level string
	Texts []string
}

// verdict judges by readiness, tiers, lateness, backlog and failures, in this order.
// Good means that calls were made in the last minute and no fault was found: a service
// that called nobody is not on time, and not late either.
func (v *visit) verdict(d *overviewData) verdict {
	var faults []string
	if d.NotReady != "" {
		faults = append(faults, v.T("Not ready: %s", d.NotReady))
	}
	for _, name := range [...]string{"cold", "warm"} {
		if up, known := d.Tiers[name]; known && !up {
			faults = append(faults, v.T("The %s is unavailable.", v.Word(name+"_tier")))
		}
	}
	for _, w := range d.Warnings {
		if w.Code != "warm_tier_away" { // it is said above
			faults = append(faults, v.T("Attention: %s.", v.Warning(w)))
		}
	}
	if d.Tasks.OldestOverdueMS > lateTask {
		faults = append(faults, v.T("Running late: the oldest overdue task has waited for %s.", millis(d.Tasks.OldestOverdueMS)))
	}
	if d.Late() {
		faults = append(faults, v.T("Running late: 1%% of the calls in the last minute were later than %s.", millis(d.LastMinute.LatenessP99MS)))
	}
	if d.SettleBacklog > manyResults {
		faults = append(faults, v.T("%s results wait to be stored.", words.Grouped(d.SettleBacklog)))
	}
	if n := failuresOf(d.Trend.Minutes, recently); n > 0 {
		faults = append(faults, v.T("Failed tasks in the last 10 minutes: %s.", words.Grouped(n)))
	}
	switch {
	case len(faults) > 0:
		return verdict{verdictBad, faults}
	case !d.HasCalls():
		return verdict{verdictNone, []string{v.T("No calls in the last minute.")}}
	}
	return verdict{verdictGood, []string{v.T("Firing on time.")}}
}

// failuresOf counts the failures of the last n minutes.
func failuresOf(ms []client.TrendMinute, n int) (failures int64) {
	for _, m := range ms[max(0, len(ms)-n):] {
		failures += m.Failures
	}
	return failures
}

// Late reports whether the last minute's calls were late.
func (d *overviewData) Late() bool {
	return d.HasCalls() && d.LastMinute.LatenessP99MS > lateCalls
}

// HasCalls reports whether the last minute had calls: else its lateness is unknown, not 0.
func (d *overviewData) HasCalls() bool { return d.LastMinute.FiresPerSecond > 0 }

// lateness is a figure of a minute; unknown when nothing was called in it.
func lateness(firesPerSecond, ms float64) string {
	if firesPerSecond == 0 {
		return "–"
	}
	return millis(ms)
}

package console

import (
	"errors"
	"slices"
	"sync"
	"time"

	"xtimer/httpapi/client"
)

// overview is GET /: the state of the service on one page.
func overview(v *visit) error {
	d := overviewData{}
	var now, next client.Coming
	err := together(
		func() error { return into(&d.Stats)(v.api.Stats(v.ctx)) },
		func() error { return into(&d.Trend)(v.api.Trend(v.ctx, 360)) },
		func() error { return into(&now)(v.api.Coming(v.ctx, "", time.Time{}, 1)) },
		func() error { return into(&next)(v.api.Coming(v.ctx, "", v.Now.Add(time.Minute), 1)) },
		func() error {
			broken := client.TaskFilter{Statuses: []string{client.Failed, client.Dead, client.Missed, client.Unknown}}
			return into(&d.Failures)(v.api.TaskPage(v.ctx, broken, 8, ""))
		},
	)
	if err != nil {
		return err
	}
	// The count by minute begins with what was loaded an hour ahead: of these
	// two minutes the wheel knows better, above all after a start.
	if !v.AllApps() {
		d.DueByMinute = make([]int64, 60) // of which these two are known
	}
	for i, c := range [...]client.Coming{now, next} {
		var n int64
		for _, k := range c.DueBySecond {
			n += k
		}
		d.DueByMinute[i] = max(d.DueByMinute[i], n)
	}
	if err := v.api.Ready(v.ctx); err != nil {
		d.NotReady = detail(err)
	}
	d.Since = d.Tasks.SinceStart
	d.Broken = d.Since[client.Failed] + d.Since[client.Dead] + d.Since[client.Missed] + d.Since[client.Unknown]
	d.Minutes = cells(d.Trend.Now.Truncate(time.Minute), time.Minute, d.DueByMinute)
	for _, n := range d.DueByMinute {
		d.ComingHour += n
	}
	d.Chart = chartOf(d.Trend.Minutes)
	d.Verdict = v.verdict(&d)
	return v.show("overview", v.T("Overview"), &d)
}

type overviewData struct {
	client.Stats
	Trend      client.Trend
	Failures   client.TaskList
	NotReady   string // why, if it is not
	Since      map[string]int64
	Broken     int64 // since the start
	Minutes    []heatCell
	ComingHour int64
	Chart      [][]*float64
	Verdict    verdict
}

// Waiting are the tasks that are due and in no call: overdue ones, which wait for
// their first or next call, and those whose next attempt is still to come.
func (d *overviewData) Waiting() int64 { return max(0, d.Tasks.Open-d.Tasks.InFlight) }

// heatCell is one minute, or second, of what is coming.
type heatCell struct {
	At     time.Time
	N      int64
	Level  int  // 0 for none, 1…5 by the share of the fullest
	Marked bool // the axis has its time
}

// markEvery is how many cells stand between two times of the axis.
const markEvery = 10

func cells(from time.Time, step time.Duration, counts []int64) []heatCell {
	var most int64
	for _, n := range counts {
		most = max(most, n)
	}
	out := make([]heatCell, len(counts))
	for i, n := range counts {
		out[i] = heatCell{At: from.Add(time.Duration(i) * step), N: n, Marked: i%markEvery == 0}
		if n > 0 {
			out[i].Level = int(min(5, 1+4*n/most))
		}
	}
	return out
}

// chartOf is the columns that uPlot draws: time, p50, p99, p99.9, fires a second,
// failures. A minute without calls has no lateness.
func chartOf(ms []client.TrendMinute) [][]*float64 {
	cols := make([][]*float64, 6)
	for i := range cols {
		cols[i] = make([]*float64, len(ms))
	}
	for i, m := range ms {
		for j, x := range [...]float64{
			float64(m.End.UnixMilli()) / 1000, m.LatenessP50MS, m.LatenessP99MS, m.LatenessP999MS,
			m.FiresPerSecond, float64(m.Failures),
		} {
			if isLateness := 1 <= j && j <= 3; !isLateness || m.FiresPerSecond > 0 {
				cols[j][i] = &x
			}
		}
	}
	return cols
}

// together runs what can be asked at the same time, and gives the first error.
func together(asks ...func() error) error {
	errs := make([]error, len(asks))
	var wg sync.WaitGroup
	for i, ask := range asks {
		wg.Go(func() { errs[i] = ask() })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// into keeps an answer of the API.
func into[T any](to *T) func(*T, error) error {
	return func(got *T, err error) error {
		if err == nil {
			*to = *got
		}
		return err
	}
}

// detail is what the API says of an error.
func detail(err error) string {
	var problem *client.Error
	if errors.As(err, &problem) && problem.Detail != "" {
		return problem.Detail
	}
	return err.Error()
}

// LastMinutes are the last half hour's, the newest first, for those who read a
// table.
func (d *overviewData) LastMinutes() []client.TrendMinute {
	ms := slices.Clone(d.Trend.Minutes[max(0, len(d.Trend.Minutes)-30):])
	slices.Reverse(ms)
	return ms
}

// Labels of the lines of the chart.
func (d *overviewData) Labels() []string { return []string{"p50", "p99", "p99.9"} }

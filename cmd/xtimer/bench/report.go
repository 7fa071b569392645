package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"xtimer/cmd/xtimer/span"
	"xtimer/cmd/xtimer/terminal"
)

// Result is what a run measured; its JSON is what --json writes.
type Result struct {
	Started time.Time `json:"started"` // the first due
	Server  string    `json:"server"`
	Version string    `json:"version"`
	Load    string    `json:"load"`
	Machine string    `json:"machine"` // of the load and the receiver
	Targets int       `json:"targets"`
	Apps    int       `json:"apps"`
	Payload int       `json:"payload_bytes"`

	Timers       int   `json:"timers"`
	Acknowledged int   `json:"acknowledged"`
	LateMade     int   `json:"acknowledged_after_due"` // and left out of the lateness
	Arrived      int   `json:"arrived"`
	Early        int64 `json:"early"`
	Missing      int   `json:"missing"`
	CutShort     bool  `json:"cut_short"` // then what is missing may yet have come
	Repeats      int64 `json:"repeats"`
	Strange      int64 `json:"strange_calls"`

	CreatesPerSecond float64 `json:"creates_per_second"`
	CreateP50        float64 `json:"create_request_p50_ms"`
	CreateP99        float64 `json:"create_request_p99_ms"`
	FiresPerSecond   float64 `json:"fires_per_second"`

	Lateness  map[string]float64 `json:"lateness_ms"`
	Histogram []benchBucket      `json:"lateness_histogram"`

	late []time.Duration // sorted
}

// benchBucket counts what was at most LE late, and later than the one before.
type benchBucket struct {
	LE    float64 `json:"le_ms"`
	Count int     `json:"count"`
}

var benchQuantiles = []struct {
	name string
	q    float64
}{{"p50", .5}, {"p90", .9}, {"p99", .99}, {"p99.9", .999}, {"max", 1}}

// newBenchResult reads off a run that has ended.
func newBenchResult(b *bench, version string, l *benchLoad, r *benchReceiver) *Result {
	res := &Result{
		Started: l.start, Server: b.client.Base, Version: version, Load: b.shape.String(),
		Machine: fmt.Sprintf("%s/%s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()),
		Targets: b.targets, Apps: b.apps, Payload: b.payload, Timers: l.n,
		Early: r.early.Load(), Repeats: r.repeats.Load(), Strange: r.strange.Load(),
	}
	var last time.Time
	for i, s := range l.state {
		at := r.arrived[i].Load()
		if s != notMade {
			res.Acknowledged++
			if at == 0 {
				res.Missing++
			}
		}
		if s == madeLate {
			res.LateMade++
		}
		if at == 0 {
			continue
		}
		res.Arrived++
		arrived := time.Unix(0, at)
		if arrived.After(last) {
			last = arrived
		}
		if s == madeTimely {
			res.late = append(res.late, arrived.Sub(b.shape.due(l.start, i)))
		}
	}
	slices.Sort(res.late)
	if took := last.Sub(l.start); took > 0 {
		res.FiresPerSecond = float64(res.Arrived) / took.Seconds()
	}
	if took := l.last.Sub(l.first); took > 0 {
		res.CreatesPerSecond = float64(res.Acknowledged) / took.Seconds()
	}
	slices.Sort(l.took)
	res.CreateP50, res.CreateP99 = inMs(quantile(l.took, .5)), inMs(quantile(l.took, .99))
	res.Lateness = map[string]float64{}
	for _, q := range benchQuantiles {
		res.Lateness[q.name] = inMs(quantile(res.late, q.q))
	}
	res.Histogram = histogramOf(res.late)
	return res
}

// quantile of sorted measurements; 0 of none.
func quantile(ds []time.Duration, q float64) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	return ds[min(int(q*float64(len(ds))), len(ds)-1)]
}

func inMs(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// histogramOf sorted measurements, in steps of 1, 2, 5; from the first bucket
// that has any to the last.
func histogramOf(ds []time.Duration) (bs []benchBucket) {
	steps := [...]time.Duration{1, 2, 5}
	seen := 0
	for unit := 10 * time.Microsecond; seen < len(ds); unit *= 10 {
		for _, s := range steps {
			n, _ := slices.BinarySearch(ds, s*unit+1)
			if n > seen || len(bs) > 0 && seen < len(ds) {
				bs = append(bs, benchBucket{inMs(s * unit), n - seen})
			}
			seen = n
		}
	}
	return bs
}

// verdict is nil when the server kept what it promises.
func (r *Result) verdict() error {
	switch {
	case r.Early > 0:
		return fmt.Errorf("%d calls came early", r.Early)
	case r.CutShort:
		return errors.New("the run was interrupted: calls that had not arrived are not counted as missing")
	case r.Missing > 0:
		return fmt.Errorf("%d calls are missing", r.Missing)
	}
	return nil
}

// print writes the figures for people.
func (r *Result) print(out io.Writer) {
	p := terminal.NewPainter(out)
	bad := func(n int64) string {
		s := fmt.Sprintf("%d", n)
		if n > 0 {
			return p.Paint(terminal.Red, s)
		}
		return s
	}
	fmt.Fprintf(out, "  made      %d of %d, %.0f/s (requests p50 %.2f ms, p99 %.2f ms)\n", r.Acknowledged, r.Timers, r.CreatesPerSecond, r.CreateP50, r.CreateP99)
	fmt.Fprintf(out, "  arrived   %d, %.0f/s\n", r.Arrived, r.FiresPerSecond)
	missing := bad(int64(r.Missing))
	if r.CutShort {
		missing = fmt.Sprintf("%d (cut short: they may yet have come)", r.Missing)
	}
	fmt.Fprintf(out, "  early     %s\n  missing   %s\n  repeats   %d\n", bad(r.Early), missing, r.Repeats)
	if r.LateMade > 0 {
		fmt.Fprintf(out, "  %s %d were acknowledged only after their due and are not in the lateness; a longer --lead helps\n", p.Paint(terminal.Yellow, "late made"), r.LateMade)
	}
	if r.Strange > 0 {
		fmt.Fprintf(out, "  strange   %d calls at the receiver were not of this run\n", r.Strange)
	}
	fmt.Fprint(out, "  late    ")
	for _, q := range benchQuantiles {
		fmt.Fprintf(out, "  %s %s", q.name, span.Millis(quantile(r.late, q.q)))
	}
	fmt.Fprint(out, "\n\n")

	most := 1
	for _, b := range r.Histogram {
		most = max(most, b.Count)
	}
	for _, b := range r.Histogram {
		const width = 50
		bar := strings.Repeat("█", (b.Count*width+most-1)/most)
		fmt.Fprintf(out, "  ≤ %9s  %9d  %s\n", shortMs(b.LE), b.Count, p.Paint(terminal.Green, bar))
	}
	if len(r.Histogram) > 0 {
		fmt.Fprintln(out)
	}
}

// shortMs writes a bound: 0.05 ms, 20 ms, 5 s.
func shortMs(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%g s", v/1000)
	}
	return fmt.Sprintf("%g ms", v)
}

func (r *Result) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

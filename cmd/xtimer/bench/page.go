package bench

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
)

//go:embed page.html
var benchPage string

// benchPlot is the plot of the page: which share of the calls was at most so
// late, on a logarithmic axis.
type benchPlot struct {
	Width, Height int
	Left, Bottom  int
	Right, Top    int
	Path          string
	X, Y          []benchTick
	Marks         []benchTick // p50, p99 …
}

type benchTick struct {
	At    float64
	Label string
}

func (r *Result) writePage(w io.Writer) error {
	t, err := template.New("report").Funcs(template.FuncMap{"share": r.share, "shortMs": shortMs}).Parse(benchPage)
	if err != nil {
		panic("BUG: the page of the report does not parse: " + err.Error())
	}
	return t.Execute(w, struct {
		*Result
		Plot      benchPlot
		Quantiles []benchTick
	}{r, r.plot(), r.quantiles()})
}

// share of a bucket in the largest, in percent: the length of its bar.
func (r *Result) share(n int) string {
	most := 1
	for _, b := range r.Histogram {
		most = max(most, b.Count)
	}
	return fmt.Sprintf("%.1f", 100*float64(n)/float64(most))
}

func (r *Result) quantiles() (ts []benchTick) {
	for _, q := range benchQuantiles {
		ts = append(ts, benchTick{r.Lateness[q.name], q.name})
	}
	return ts
}

// plot draws it, in the units of the SVG.
func (r *Result) plot() benchPlot {
	p := benchPlot{Width: 900, Height: 420, Left: 60, Right: 870, Top: 20, Bottom: 370}
	if len(r.late) == 0 {
		return p
	}
	// The axis runs over whole decades; what is below 10 µs is at its left end.
	const least = 0.01
	log := func(ms float64) float64 { return math.Log10(max(ms, least)) }
	from := math.Floor(log(inMs(r.late[0])))
	to := max(math.Ceil(log(inMs(r.late[len(r.late)-1]))), from+1)
	x := func(ms float64) float64 {
		return float64(p.Left) + (log(ms)-from)/(to-from)*float64(p.Right-p.Left)
	}
	y := func(q float64) float64 { return float64(p.Bottom) - q*float64(p.Bottom-p.Top) }

	for d := from; d <= to; d++ {
		v := math.Pow(10, d)
		p.X = append(p.X, benchTick{x(v), shortMs(v)})
	}
	for q := range 5 {
		share := float64(q) / 4
		p.Y = append(p.Y, benchTick{y(share), fmt.Sprintf("%.0f %%", share*100)})
	}
	for _, q := range r.quantiles() {
		p.Marks = append(p.Marks, benchTick{x(q.At), q.Label})
	}

	// Two thousand points at most are as good as all of them.
	var path strings.Builder
	fmt.Fprintf(&path, "M%.1f %.1f", x(inMs(r.late[0])), y(0))
	n := len(r.late)
	for k := range min(n, 2000) {
		i := (k + 1) * n / min(n, 2000)
		fmt.Fprintf(&path, "L%.1f %.1f", x(inMs(r.late[i-1])), y(float64(i)/float64(n)))
	}
	p.Path = path.String()
	return p
}

package httpapi

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// counters is what the server counts of itself.
type counters struct {
	set          *metrics.Set
	seconds      *metrics.PrometheusHistogram
	unrouted     [6]*metrics.Counter
	panics       *metrics.Counter
	acceptErrors *metrics.Counter
	refused      *metrics.Counter
	dropped      *metrics.Counter
	streams      atomic.Int64
	open         func() float64 // of connections; written before serving begins
}

func (c *counters) init(s *Server) {
	// The library writes its HELP and TYPE lines for the whole process or not
	// at all.
	metrics.ExposeMetadata(true)
	c.set = metrics.NewSet()
	c.seconds = c.set.NewPrometheusHistogramExt("xtimer_http_request_seconds",
		[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10})
	classes := [...]string{2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx"}
	count := func(route string, to *[6]*metrics.Counter) {
		for i, class := range classes {
			if class != "" {
				to[i] = c.set.NewCounter(`xtimer_http_requests_total{route="` + route + `",class="` + class + `"}`)
			}
		}
	}
	for i := range s.routes {
		count(s.routes[i].method+" "+s.routes[i].path, &s.routes[i].answers)
	}
	count("none", &c.unrouted)
	c.panics = c.set.NewCounter("xtimer_http_panics_total")
	c.acceptErrors = c.set.NewCounter("xtimer_http_accept_errors_total")
	c.refused = c.set.NewCounter("xtimer_http_connections_refused_total")
	c.dropped = c.set.NewCounter("xtimer_stream_dropped_total")
	c.open = func() float64 { return 0 }
	c.set.NewGauge("xtimer_http_connections", func() float64 { return c.open() })
	c.set.NewGauge("xtimer_streams", func() float64 { return float64(c.streams.Load()) })
}

// count counts one answer; rt is nil when no route was found.
func (c *counters) count(rt *route, status int, took time.Duration) {
	to := &c.unrouted
	if rt != nil {
		to = &rt.answers
	}
	if n := to[min(status/100, 5)]; n != nil {
		n.Inc()
	}
	c.seconds.Update(took.Seconds())
}

// getMetrics is GET /metrics.
func (s *Server) getMetrics(*request) (reply, error) {
	var b bytes.Buffer
	s.stats.set.WritePrometheus(&b)
	if s.cfg.Metrics != nil {
		s.cfg.Metrics(&b)
	}
	metrics.WriteProcessMetrics(&b)
	metrics.WriteFDMetrics(&b)
	var out bytes.Buffer
	explain(&out, &b)
	return reply{body: rendered(out.Bytes()), kind: "text/plain; version=0.0.4; charset=utf-8"}, nil
}

// explain gives every metric the text of the help table, for the library
// writes HELP lines without any. Of the library's own families it leaves out
// those that the table does not name: some have a wrong type.
func explain(out *bytes.Buffer, in io.Reader) {
	leaveOut := false
	for lines := bufio.NewScanner(in); lines.Scan(); {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, _, _ := strings.Cut(rest, " ")
			text := help[name]
			leaveOut = text == "" && (strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_"))
			line = "# HELP " + name + " " + text
		}
		if !leaveOut {
			out.WriteString(line)
			out.WriteByte('\n')
		}
	}
}

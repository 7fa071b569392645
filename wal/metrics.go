package wal

import "github.com/VictoriaMetrics/metrics"

// syncBounds reach from a good NVMe disk to the stall that Err reports.
var syncBounds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}

// Metrics are the journal's own, for the server's page.
func (l *Log) Metrics() *metrics.Set { return l.set }

func (l *Log) register() {
	l.synced = l.set.NewPrometheusHistogramExt("xtimer_wal_sync_seconds", syncBounds)
	l.set.NewGauge("xtimer_wal_entries", func() float64 { return float64(l.Len()) })
	l.set.NewGauge("xtimer_wal_unsynced", func() float64 { n, _ := l.Unsynced(); return float64(n) })
}

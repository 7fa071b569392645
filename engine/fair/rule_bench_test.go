package fair

import (
	"fmt"
	"testing"
	"time"

	"xtimer/engine/flow"
)

// BenchmarkPauseOfAll pauses and resumes all apps with so many lanes, in each of which a call
// waits. longest-ms is how long somebody else waits for the queue at most.
func BenchmarkPauseOfAll(b *testing.B) {
	for _, lanes := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(lanes), func(b *testing.B) {
			q := New(Config[int]{Places: 1, PerApp: 1, PerTarget: 1, Run: func(int) Result { select {} }})
			items := make([]Item[int], lanes)
			for i := range items {
				items[i] = Item[int]{Value: i, Lane: q.Lane(fmt.Sprint("app-", i%1000), fmt.Sprint("http://t", i), ""), Priority: 5}
				q.Push(&items[i])
			}
			stop, longest := make(chan struct{}), make(chan time.Duration)
			go func() {
				most := time.Duration(0)
				for {
					select {
					case <-stop:
						longest <- most
						return
					default:
					}
					began := time.Now()
					q.HeldItems()
					most = max(most, time.Since(began))
					time.Sleep(100 * time.Microsecond)
				}
			}()
			all := flow.Name{Kind: flow.OfApp, App: flow.EachApp}
			var pause, resume time.Duration
			b.ResetTimer()
			for range b.N {
				began := time.Now()
				q.SetRule(all, &flow.Rule{Paused: flow.Never})
				pause += time.Since(began)
				began = time.Now()
				q.SetRule(all, nil)
				for q.HeldItems()[flow.ByPause] > 0 {
					time.Sleep(time.Millisecond)
				}
				resume += time.Since(began)
			}
			close(stop)
			b.ReportMetric(float64(pause.Milliseconds())/float64(b.N), "pause-ms")
			b.ReportMetric(float64(resume.Milliseconds())/float64(b.N), "resume-ms")
			b.ReportMetric((<-longest).Seconds()*1000, "longest-ms")
		})
	}
}

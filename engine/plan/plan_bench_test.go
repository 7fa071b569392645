package plan

import (
	"fmt"
	"testing"
	"time"

	"xtimer/engine"
)

// What a timer that nobody served for a while costs: the run of its dues in that time.
func BenchmarkRun(b *testing.B) {
	to := time.Date(2026, 11, 20, 16, 59, 30, 0, time.UTC).UnixMilli()
	for _, spec := range []string{"* * * * *", "7 * * * *", "30 2 * * *", "*/5 * * * * *", "0 9-17 * * MON-FRI"} {
		for _, days := range []int64{3, 365} {
			for _, jitter := range []time.Duration{0, 20 * time.Second} {
				b.Run(fmt.Sprint(spec, " ", days, "d ", jitter), func(b *testing.B) {
					d := engine.NewDefinition()
					d.Schedule = engine.Schedule{Cron: spec, TimeZone: "Europe/Berlin", Jitter: jitter}
					p, err := Of(&engine.Timer{Definition: d, ID: 1})
					if err != nil {
						b.Fatal(err)
					}
					for i := 0; b.Loop(); i++ {
						at := to + int64(i%1000) // nobody asks twice for the same
						p.id = engine.TimerID(i)
						p.Run(at-days*86_400_000, at)
					}
				})
			}
		}
	}
}

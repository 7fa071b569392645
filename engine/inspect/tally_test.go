package inspect

import (
	"testing"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
)

// What a start finds counts for its app as for the service, once. It is told to nobody.
func TestTallyOfWhatIsFound(t *testing.T) {
	now, told := int64(1_763_658_000_000), 0
	f := NewFigures()
	y := newTally(f, NewSubscribers(nil), func(*engine.Task) { told++ }, metrics.NewSet())
	missed := func(ended, n int64) []*engine.Task {
		return []*engine.Task{{App: "a", Status: engine.Missed, Ended: ended, DueLast: 1, Count: n, Lateness: -1}}
	}
	check := func(when string, ended, hour, minute int64) {
		t.Helper()
		x := f.Of("a", now)
		if n := y.ended()[engine.Missed]; n != ended || x.SinceStart[engine.Missed] != ended {
			t.Errorf("%s: %d of the service and %d of the app, want %d", when, n, x.SinceStart[engine.Missed], ended)
		}
		if x.Hour.Ended[engine.Missed] != hour || x.Minute.Ended[engine.Missed] != minute || x.Hour.Called != 0 {
			t.Errorf("%s: %d of the hour, %d of the minute, want %d and %d", when, x.Hour.Ended[engine.Missed], x.Minute.Ended[engine.Missed], hour, minute)
		}
	}
	y.Found(missed(now, 7), now)
	check("found", 7, 7, 7)
	y.Decided(missed(now, 10))
	check("decided", 17, 17, 17)
	if told != 1 {
		t.Errorf("%d were told", told)
	}
	y.Found(missed(now-10*minute, 100), now)
	check("found late", 117, 117, 17)
	// 7 slots before now: the place of the slot of now.
	y.Found(missed(now-70*minute, 1000), now)
	check("found after an hour", 1117, 117, 17)
}

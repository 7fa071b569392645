package bench

import (
	"bytes"
	"testing"
	"time"

	"xtimer/bench/target"
	"xtimer/engine"
)

// TestBigBodies calls one-shots with big bodies in a control group of 512 MiB: 100,000
// of 10 KiB that are due at one instant, created through the API, and 3,000 of 256 KiB
// that are due within 20 s, found by a start. All are called, and the process lives.
func TestBigBodies(t *testing.T) {
	t.Run("10 KiB at one instant", func(t *testing.T) {
		limitMemory(t, byForm[int64](t, 256, 512)<<20)
		p, g := startProcess(t), listen(t, 0)
		due := time.Now().Add(byForm(t, 10*time.Second, 90*time.Second))
		keys := shots(t, p, "big", g, byForm(t, 30_000, 100_000), 10<<10, func(int) time.Time { return due })
		t.Logf("created %v before they are due", round(time.Until(due)))
		p.awaitBig(g, keys, max(0, time.Until(due))+byForm(t, 10*time.Second, 2*time.Minute))
	})
	t.Run("256 KiB within 20 s", func(t *testing.T) {
		limitMemory(t, byForm[int64](t, 160, 512)<<20)
		g := listen(t, 0)
		n, over := byForm(t, 800, 3000), byForm(t, 6*time.Second, 20*time.Second)
		first := time.Now().Add(byForm(t, 5*time.Second, 40*time.Second)) // the start comes before
		d := engine.NewDefinition()
		d.App, d.Callback.URL = "big", g.URL
		d.Callback.Body, d.Callback.HasBody, d.Callback.BodyKind = bytes.Repeat([]byte("x"), 256<<10), true, engine.BodyText
		var keys []target.Key
		p, _ := startSeeded(t, func(yield func(*engine.Timer) bool) {
			i := 0
			for x := range alike(n, time.Now(), d) {
				x.Schedule.At = first.Add(over * time.Duration(i) / time.Duration(n)).UnixMilli()
				i++
				if keys = append(keys, target.Key{Timer: uint64(i), Due: x.Schedule.At}); !yield(x) {
					return
				}
			}
		}, time.Now())
		t.Logf("started %v before the first is due", round(time.Until(first)))
		p.awaitBig(g, keys, max(0, time.Until(first))+over+byForm(t, 10*time.Second, time.Minute))
	})
}

// awaitBig waits until all tasks were called.
func (p *process) awaitBig(g *target.Server, keys []target.Key, within time.Duration) {
	p.t.Helper()
	missing := p.awaitCalls(g, keys, within)
	p.t.Logf("of %d tasks %d were not called", len(keys), missing)
	if missing > 0 {
		p.t.Error("want all called")
	}
	p.sit(0) // it has not ended
}

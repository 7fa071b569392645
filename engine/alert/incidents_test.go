package alert

import (
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// The incident of a timer that is deleted closes, and that of another does not.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.rule("r", func(*Rule) {})
		w.run()
		w.ends(1, engine.Dead)
		w.ends(2, engine.Dead)
		w.says(2*time.Second, "incident.opened", "incident.opened")
		w.gone.Store(2)
		if m := w.says(time.Minute, "incident.recovered"); m[0].Incident.By != "t2" || m[0].Incident.Why != "gone" {
			t.Errorf("%+v", m[0].Incident)
		}
		w.stop()
	})
}

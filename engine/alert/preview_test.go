package alert

import (
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// A preview counts as many incidents as the rule opens: a timer that fails, recovers and fails again
// has two, and what recovers in between is no streak.
func TestPreviewCountsAsTheRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		w := newWorld(t, cold)
		w.channel(60)
		rules := map[string]func(*Rule){
			"timer":   func(*Rule) {},
			"streak":  func(r *Rule) { r.Streak = 2 },
			"app":     func(r *Rule) { r.By, r.Within = "app", time.Minute },
			"within":  func(r *Rule) { r.After, r.Within = 2, time.Minute },
			"prefix":  func(r *Rule) { r.Match.NamePrefix = "t2" },
			"label":   func(r *Rule) { r.Match.Label, r.By = "team=a", "target" },
			"nothing": func(r *Rule) { r.Match.Label = "team=b" },
		}
		for name, edit := range rules {
			w.rule(name, edit)
		}
		w.run()
		from := time.Now().UnixMilli()
		for _, x := range []struct {
			timer  engine.TimerID
			status engine.TaskStatus
			wait   time.Duration
		}{
			{1, engine.Dead, 10 * time.Second},
			{1, engine.Succeeded, 10 * time.Second},
			{1, engine.Dead, 2 * time.Minute},
			{1, engine.Succeeded, 10 * time.Second},
			{2, engine.Failed, 10 * time.Second},
			{2, engine.Failed, 10 * time.Second},
			{2, engine.Skipped, time.Second},
			{2, engine.Failed, 10 * time.Second},
			{1, engine.Succeeded, 2 * time.Minute},
			{2, engine.Succeeded, 2 * time.Minute},
			{2, engine.Failed, 2 * time.Minute},
			{2, engine.Failed, 2 * time.Minute},
		} {
			w.settled(x.timer, x.status)
			time.Sleep(x.wait)
		}
		w.gone.Store(2) // its last definition is not kept either
		failed := map[string]int{"prefix": 5, "label": 2, "nothing": 0}
		for name, edit := range rules {
			real := 0
			for _, i := range w.Incidents("") {
				if i.Rule == name {
					real++
				}
			}
			r := NewRule()
			r.On = []string{"dead", "failed"}
			edit(&r)
			want, is := failed[name]
			if !is {
				want = 7
			}
			opened, n, err := w.Preview(t.Context(), "shop", r, from)
			if name == "label" { // by definitions of which one is gone
				real = 1
			}
			if opened != real || n != want || err != nil {
				t.Errorf("%s: %d incidents of %d failures, want %d of %d: %v", name, opened, n, real, want, err)
			}
		}
		w.stop()
	})
}

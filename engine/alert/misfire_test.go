package alert

import (
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// misfires is the record of so many dues of a timer that were skipped.
func misfires(timer engine.TimerID, reason string, n int64) *engine.Task {
	now := time.Now().UnixMilli()
	return &engine.Task{
		Key: engine.Key{Timer: timer, Due: now - 60_000}, App: "shop", Name: "t1", Status: engine.Skipped, Reason: reason,
		DueLast: now, Count: n, Ended: now,
	}
}

// Dues that were skipped as misfires count as missed, each of them; those that were skipped for
// another reason do not.
func TestMisfires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, memory.NewCold())
		w.channel(60)
		w.rule("r", func(r *Rule) { r.On = []string{"missed"} })
		w.rule("dead", func(r *Rule) { r.On = []string{"dead"} })
		w.rule("many", func(r *Rule) { r.On, r.After, r.By = []string{"missed"}, 6, "app" })
		w.rule("row", func(r *Rule) { r.On, r.Streak = []string{"missed"}, 5 })
		w.run()
		w.Ended(misfires(2, engine.ReasonOverlap, 9))
		w.says(2 * time.Second)
		w.Ended(misfires(1, engine.ReasonMisfire, 3))
		i := w.says(2*time.Second, "incident.opened")[0].Incident
		if i.Count != 3 || i.On[0] != "missed" || i.Tasks[0].Status != "skipped" || i.Tasks[0].Reason != "misfire" {
			t.Errorf("%+v", i)
		}
		w.Ended(misfires(1, engine.ReasonMisfire, 4))
		for _, m := range w.says(2*time.Second, "incident.opened", "incident.opened") {
			if m.Incident.Count != 7 {
				t.Errorf("%+v", m.Incident)
			}
		}
		for _, i := range w.Incidents("shop") {
			if i.Count != 7 {
				t.Errorf("%+v", i)
			}
		}
		w.stop()
	})
}

// The misfires that a start finds are told, and a preview counts them.
func TestMisfiresOfAStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		w := newWorld(t, cold)
		w.channel(60)
		w.rule("r", func(r *Rule) { r.On = []string{"missed"} })
		w.run()
		w.says(10 * time.Second)
		w.stop()
		time.Sleep(time.Hour)
		for _, x := range []*engine.Task{misfires(1, engine.ReasonMisfire, 60), misfires(2, engine.ReasonOverlap, 5)} {
			if err := cold.Settle(t.Context(), &engine.Settlement{Owner: "n", Tasks: []engine.Record{{Key: x.Key, Status: x.Status, Encoded: engine.AppendTask(nil, x)}}}); err != nil {
				t.Fatal(err)
			}
		}
		w = newWorld(t, cold)
		w.run()
		if m := w.says(10*time.Second, "incident.opened"); m[0].Incident.Count != 60 {
			t.Errorf("%+v", m[0].Incident)
		}
		r := NewRule()
		r.On = []string{"missed"}
		if opened, failed, err := w.Preview(t.Context(), "shop", r, time.Now().Add(-time.Hour).UnixMilli()); opened != 1 || failed != 60 || err != nil {
			t.Errorf("a preview: %d of %d, %v", opened, failed, err)
		}
		w.stop()
	})
}

package bench

import (
	"fmt"
	"testing"
	"time"

	"xtimer/bench/checker"
)

// TestKillBatches kills the real binary while each call carries many tasks: of timers of
// 10 ms, of which some fail the first time or always. Then the checker judges what arrived,
// and the ledger has to prove itself.
//
// XTIMER_RATE is how many tasks are due a second, XTIMER_KILLS how often it is killed. It is
// judged in parts of as many tasks as fit into memory.
func TestKillBatches(t *testing.T) {
	beside(t)
	rate, seed := setting("XTIMER_RATE", 2000), seedOf(t)
	part := max(500_000/rate, 1)
	for left := setting("XTIMER_KILLS", 2); left > 0; left -= part {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { judgedBatches(t, seed, rate, min(left, part)) })
		seed++
	}
}

func judgedBatches(t *testing.T, seed uint64, rate, kills int) {
	o := &owners{t: t, seed: seed, p: startProcess(t), w: startWitness(t), rate: rate}
	o.w.asked(checker.Asked{Op: checker.Run, Conditions: &checker.Condition{
		Ended: time.Now().Add(24 * time.Hour).UnixMilli(), InCall: 4 * mostTogether, MinRate: rate / 4, MinOpen: rate / 100, Recover: 60_000,
	}})
	began := time.Now()
	o.batched(rate / 100)
	r := draw(seed, 0)
	for i := range kills {
		if i%3 != 2 { // else in the middle of catching up
			o.caughtUp()
		}
		o.busy(r)
		o.end(false)
	}
	o.caughtUp()
	time.Sleep(time.Second)
	for _, x := range o.mine {
		a := checker.Asked{Op: checker.Disable, Timer: x.id}
		if o.ask(&a, "POST", "/v1/timers/"+x.id+"/disable", nil); !a.OK {
			t.Fatalf("disable: %d", a.Status)
		}
		o.w.asked(a)
	}
	o.judge()
	t.Logf("%d kills: %s; %d tasks a call", kills, o.reached(), len(o.w.logs.Arrived)/max(o.w.batches, 1))
	proveLedger(t, o.p, began)
	if o.w.batches == 0 {
		t.Error("no call carried many tasks")
	}
}

// mostTogether is the most tasks of one call.
const mostTogether = 500

// batched creates so many timers of 10 ms that are called together. Of a hundred, one fails each
// task the first time, and one of five hundred fails always.
func (o *owners) batched(n int) {
	for i := range n {
		kind := takes
		switch {
		case i%500 == 7:
			kind = fails
		case i%100 == 3:
			kind = stumbles
		}
		x := &owned{name: fmt.Sprintf("%s-%d", kind, names.Add(1))}
		body := "of " + x.name
		x.def = checker.Definition{
			Schedule: checker.Schedule{Every: 10}, Misfire: "all", Retry: retryOften,
			RequestSHA: sha("POST", "", "text/plain", []byte(body)),
		}
		o.create(x, map[string]any{
			"schedule": map[string]any{"every": 10},
			"misfire":  map[string]any{"policy": "all"},
			"retry":    retryOftenSaid,
			"callback": map[string]any{
				"url": o.w.url, "headers": map[string]string{"Content-Type": "text/plain"}, "body_text": body,
				"batch": map[string]any{"max": mostTogether},
			},
		})
	}
}

// caughtUp waits until tasks arrive less than half a second after their dues.
func (o *owners) caughtUp() {
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		o.w.mu.Lock()
		last := o.w.logs.Arrived[len(o.w.logs.Arrived)-1]
		o.w.mu.Unlock()
		if last.At > time.Now().Add(-time.Second).UnixMicro() && last.At/1000-last.Due < 500 {
			return
		}
		if time.Now().After(deadline) {
			o.t.Fatalf("tasks arrive %d ms after their dues: this machine is too busy for the trial", last.At/1000-last.Due)
		}
	}
}

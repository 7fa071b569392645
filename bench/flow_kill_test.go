package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"xtimer/bench/checker"
)

// flowLimits are what the keys of TestFlows allow, by what their names begin with.
var flowLimits = []struct {
	kind  string
	limit checker.Limit
}{
	{"even", checker.Limit{Rate: 2, Per: 1000}},
	{"burst", checker.Limit{Rate: 4, Per: 1000, Burst: 4}},
	{"line", checker.Limit{Concurrency: 1, Hold: "task"}},
	{"both", checker.Limit{Rate: 2, Per: 1000, Concurrency: 1, Hold: "task"}},
}

// flowWay is how long a call may take from its hand-out to the receiver, on a machine whose own
// timers are on time: some ms for a connection, and for turns of the processor.
const flowWay = 300 * time.Millisecond

// TestFlows lets owners create timers that name flow keys, some at a time for one key, and
// pause and resume keys, while the real binary is killed. Then the checker judges that no
// window of a key had more calls than its rate, that tasks of a key with one place went one
// after the other, that nothing was called while it was paused, and that nothing is lost.
//
// XTIMER_KILLS, XTIMER_KEYS and XTIMER_RATE make it longer and heavier. It is judged in parts,
// as TestJudged.
func TestFlows(t *testing.T) {
	beside(t)
	const part = 50
	seed := seedOf(t)
	for left := setting("XTIMER_KILLS", 3); left > 0; left -= part {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { judgedFlows(t, seed, min(left, part)) })
		seed++
	}
}

func judgedFlows(t *testing.T, seed uint64, kills int) {
	o := &owners{
		t: t, seed: seed, p: startProcess(t), w: startWitness(t),
		rate: setting("XTIMER_RATE", 400), keys: setting("XTIMER_KEYS", 800),
	}
	o.w.asked(checker.Asked{Op: checker.Run, Conditions: &checker.Condition{
		Ended: time.Now().Add(24 * time.Hour).UnixMilli(), InCall: 4096, MinRate: o.enough(), MinOpen: 1, MinFull: 10 * kills, Recover: 60_000,
	}})
	for i := range flowLimits {
		o.limit(flowLimits[i].kind+"-*", &flowLimits[i].limit)
	}
	done := make(chan struct{})
	var work sync.WaitGroup
	for i := range uint64(creators) {
		work.Go(func() { o.loadFlows(done, draw(o.seed, 3+i)) })
	}
	work.Go(func() { o.pauses(done) })
	work.Go(func() { o.watch(done) })
	for i := range kills {
		if i > 0 { // until then a key with a rate waits
			time.Sleep(time.Second)
		}
		o.busy(draw(o.seed, 100+uint64(i)))
		o.end(false)
	}
	close(done)
	work.Wait()
	o.judge()
	t.Logf("seed %d, %d × kill -9, %d keys: %s", seed, kills, o.keys, o.reached())
}

// limit sets the limit of a key or a pattern.
func (o *owners) limit(key string, l *checker.Limit) {
	in := map[string]any{}
	if l.Rate > 0 {
		in["rate"], in["per"] = l.Rate, l.Per
	}
	if l.Burst > 0 {
		in["burst"] = l.Burst
	}
	if l.Concurrency > 0 {
		in["concurrency"], in["hold"] = l.Concurrency, l.Hold
	}
	a := checker.Asked{Op: checker.Limits, App: "bench", Flow: key, Limit: l}
	if out := o.ask(&a, "PUT", "/v1/apps/bench/flows/"+key, in); !a.OK {
		o.t.Fatalf("the limit of %s: %d %v", key, a.Status, out)
	}
	o.w.asked(a)
}

// key draws the name of a key. Each tenth is of some keys that are used all the time, about as
// much as their rates allow over the kills: what waits for them is to be over in the end.
func (o *owners) key(r *rand.Rand) string {
	n := r.IntN(o.keys)
	if r.IntN(10) == 0 {
		n %= o.rate / 2
	}
	return fmt.Sprint(flowLimits[n%len(flowLimits)].kind, "-", n)
}

// loadFlows creates one-shots at the share of one creator, up to four at a time for one key.
func (o *owners) loadFlows(done chan struct{}, r *rand.Rand) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		var b bytes.Buffer
		var asked []checker.Asked
		now := time.Now()
		for len(asked) < max(o.rate/20/creators, 1) {
			key, due := o.key(r), now.UnixMilli()+300+r.Int64N(900)
			for range 1 + r.IntN(4) {
				due += r.Int64N(20)
				asked = append(asked, o.flowShot(&b, key, due, r))
			}
		}
		ids, err := createBatch(o.p.url(""), b.Bytes())
		for i := range asked {
			a := &asked[i]
			a.Invoked, a.From, a.Answered = now.UnixMilli(), now.UnixMilli(), time.Now().UnixMilli()
			switch {
			case err == nil:
				a.OK, a.Timer = true, ids[i]
			case errors.Is(err, syscall.ECONNREFUSED):
				a.Failed = true
			}
			o.w.asked(*a)
		}
	}
}

// flowShot writes a one-shot of a key.
func (o *owners) flowShot(b *bytes.Buffer, key string, due int64, r *rand.Rand) checker.Asked {
	name := fmt.Sprintf("%s-%d", []string{takes, takes, takes, takes, takes, takes, stumbles, drops, refuses, fails}[r.IntN(10)], names.Add(1))
	d := checker.Definition{Schedule: checker.Schedule{At: due}, Flow: key}
	if r.IntN(8) == 0 {
		d.Delivery = "at_most_once"
	}
	in := o.write(name, &d)
	in["app"], in["name"], in["flow"] = "bench", name, []string{key}
	delete(in["callback"].(map[string]any), "batch") // a batch is one call
	json.NewEncoder(b).Encode(in)
	return checker.Asked{Op: checker.Create, App: "bench", Name: name, Definition: &d}
}

// pauses pauses keys and patterns for a moment, until done. So the objects of limits are
// written again, also right after a start.
func (o *owners) pauses(done chan struct{}) {
	r := draw(o.seed, 2)
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Duration(100+r.IntN(300)) * time.Millisecond):
		}
		key := o.key(r)
		if r.IntN(3) == 0 {
			key = flowLimits[r.IntN(len(flowLimits))].kind + "-*"
		}
		for _, op := range []string{checker.Pause, checker.Resume} {
			a := checker.Asked{Op: op, App: "bench", Flow: key}
			for deadline := time.Now().Add(time.Minute); !a.OK && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
				o.ask(&a, "POST", "/v1/apps/bench/flows/"+key+"/"+op, nil)
				if a.OK || !a.Failed {
					o.w.asked(a)
				}
				a.Failed = false
			}
			if !a.OK {
				o.t.Errorf("%s of %s: %d", op, key, a.Status)
			}
		}
	}
}

// onTheWay is how long a call of a flow key may be on its way: while this process and its
// machine stand still, calls that were handed out one after the other arrive together.
func (o *owners) onTheWay() time.Duration { return flowWay + 2*slices.Max(o.own) }

package bench

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"xtimer/bench/checker"
)

var savedLogs = flag.String("logs", "", "the folder of a saved run, for TestCheck")

// TestCheck judges a saved run again: go test ./bench -run TestCheck -logs DIR
func TestCheck(t *testing.T) {
	if *savedLogs == "" {
		t.Skip("-logs names no saved run")
	}
	l, err := checker.Read(*savedLogs)
	if err != nil {
		t.Fatal(err)
	}
	r, err := checker.Check(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r)
	if !r.OK() {
		t.Error("the promises do not hold")
	}
}

// TestJudged lets owners create, change, disable and delete timers of all kinds,
// with targets of all kinds, while the real binary is killed and ended under
// load; then the checker judges what was seen from outside, and the ledger has
// to prove itself from inside.
//
// XTIMER_KILLS and XTIMER_RATE make it longer and heavier. It is judged in parts, of
// which each has data and a seed of its own, the next number: a run that fails is
// saved, and small enough to be looked at.
func TestJudged(t *testing.T) {
	beside(t)
	const part = 50
	seed := seedOf(t)
	for left := setting("XTIMER_KILLS", 3); left > 0; left -= part {
		onEachStore(t, func(t *testing.T, args ...string) { judged(t, seed, min(left, part), args...) })
		seed++
	}
}

func judged(t *testing.T, seed uint64, kills int, args ...string) {
	t.Logf("XTIMER_SEED=%d XTIMER_KILLS=%d draws this part again", seed, kills)
	o := &owners{t: t, seed: seed, p: startProcess(t, args...), w: startWitness(t), rate: setting("XTIMER_RATE", 300)}
	o.w.asked(checker.Asked{Op: checker.Run, Conditions: &checker.Condition{
		Ended: time.Now().Add(24 * time.Hour).UnixMilli(), InCall: 256, MinRate: o.enough(), MinOpen: 10,
		Recover: 60_000, Calm: calm.Milliseconds(),
	}})
	began := time.Now()
	r := draw(o.seed, 0)
	o.recurring(r)
	done := make(chan struct{})
	var work sync.WaitGroup
	for i := range uint64(creators) {
		work.Go(func() { o.load(done, draw(o.seed, 3+i)) })
	}
	work.Go(func() { o.change(done) })
	work.Go(func() { o.watch(done) })
	for i := range kills {
		o.busy(r)
		if i%10 == 2 {
			o.rest()
		}
		o.end(false)
		if i%10 == 2 {
			o.busy(r)
			o.end(true)
		}
	}
	o.busy(r)
	o.rest()
	close(done)
	work.Wait()
	o.judge()
	t.Logf("seed %d, %d × kill -9: %s", seed, kills, o.reached())
	proveLedger(t, o.p, began)
}

// busy waits until enough is going on for an end of the process to mean something:
// half of the rate, or two thirds of a burst.
func (o *owners) busy(r *rand.Rand) {
	o.t.Helper()
	time.Sleep(time.Duration(300+r.IntN(1200)) * time.Millisecond)
	enough := max(o.rate/2, 100)
	if o.rate > steady {
		enough = o.rate / 3
	}
	deadline := time.Now().Add(2 * time.Minute)
	for {
		for ; o.w.rate() < enough; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				o.t.Fatalf("only %d calls a second arrive: this machine is too busy for the trial", o.w.rate())
			}
		}
		time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
		if o.w.rate() >= o.enough() { // else a burst has ended meanwhile
			return
		}
	}
}

// enough is how many calls must have arrived in the second before an end of the process.
func (o *owners) enough() int { return max(100, o.rate/4) }

// calm is how long after an end of the process its lateness is judged again.
const calm = 2 * time.Second

// rest is a while without an end, in which lateness is judged.
func (o *owners) rest() {
	if o.onTime() {
		time.Sleep(calm + 3*time.Second)
	}
}

// onTime reports whether lateness is judged: where the load is well below what the
// machine bears.
func (o *owners) onTime() bool { return o.rate <= 1000 }

// watch notes how late this machine's own timers are, until done.
func (o *owners) watch(done chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		asked := time.Now()
		time.Sleep(time.Millisecond)
		o.own = append(o.own, time.Since(asked)-time.Millisecond)
	}
}

// bounds are those of lateness outside faults: 2, 20 and 250 ms at p50, p99 and
// the most. A machine whose own timers are later than 1 ms is too busy to say
// anything about it.
func (o *owners) bounds(c *checker.Condition) {
	if o.keys > 0 {
		c.OnTheWay = o.onTheWay().Milliseconds()
		o.t.Logf("this machine's own timers were up to %v late: a call may be on its way for %d ms", slices.Max(o.own), c.OnTheWay)
	}
	if !o.onTime() || o.keys > 0 {
		return
	}
	slices.Sort(o.own)
	if own := o.own[len(o.own)*99/100]; own > time.Millisecond {
		o.t.Logf("lateness is not judged: this machine's own timers were %v late at p99", own)
		return
	}
	c.P50, c.P99, c.Max = 2000, 20_000, 250_000
}

// end ends the process, well or not, and starts it again.
func (o *owners) end(well bool) {
	b := checker.Broken{Fault: "kill", From: time.Now().UnixMilli()}
	if well {
		b.Fault = "terminate"
		if code := o.p.terminate(); code != 0 {
			o.t.Errorf("exit status %d after SIGTERM", code)
		}
	} else {
		o.p.kill()
	}
	o.p.start()
	b.To = time.Now().UnixMilli()
	o.w.broken(b)
}

// judge waits until all is over, and has the checker look at it. What fails is
// saved.
func (o *owners) judge() {
	t := o.t
	ended := time.Now().Add(2 * time.Second).UnixMilli()
	o.w.mu.Lock()
	logs := o.w.logs // nobody asks any more
	o.w.mu.Unlock()
	o.bounds(logs.Asked[0].Conditions)
	// What ended last may be called again twice. To look takes its time, too: of a
	// long run, as long as the next pause.
	time.Sleep(time.Until(time.UnixMilli(ended)) + time.Second)
	for deadline := time.Now().Add(2 * time.Minute); ; {
		began := time.Now()
		o.w.mu.Lock()
		logs.Arrived = slices.Clone(o.w.logs.Arrived)
		o.w.mu.Unlock()
		saved := logs
		saved.Asked = append(slices.Clone(logs.Asked), o.finals()...)
		conditions := *saved.Asked[0].Conditions
		conditions.Ended = ended
		saved.Asked[0].Conditions = &conditions
		r, err := checker.Check(&saved)
		if err != nil {
			t.Fatal(err)
		}
		if r.OK() {
			t.Log(r)
			return
		}
		if time.Now().After(deadline) {
			dir, err := os.MkdirTemp("", "xtimer-run-")
			if err == nil {
				err = saved.Write(dir)
			}
			t.Fatalf("the promises do not hold: %s\nThe run is saved (%v): go test ./bench -run TestCheck -logs %s", r, err, dir)
		}
		time.Sleep(max(time.Since(began), 500*time.Millisecond))
	}
}

// reached is the load that there really was, beside the one that was asked.
func (o *owners) reached() string {
	o.w.mu.Lock()
	defer o.w.mu.Unlock()
	l := &o.w.logs
	var times []int64
	for i := range l.Arrived {
		times = append(times, l.Arrived[i].At/1000)
	}
	slices.Sort(times)
	calls := func(from, to int64) int64 {
		i, _ := slices.BinarySearch(times, from)
		j, _ := slices.BinarySearch(times, to)
		return int64(j - i)
	}
	var up, created, called int64 // up: ms
	var last []int64
	from := l.Asked[1].Answered // the first create
	for _, b := range l.Broken {
		up += b.From - from
		called += calls(from, b.From)
		last = append(last, 4*calls(b.From-250, b.From))
		from = b.To
	}
	for i := range l.Asked {
		if a := &l.Asked[i]; a.Op == checker.Create && a.OK && a.Invoked < from {
			created++
		}
	}
	slices.Sort(last)
	return fmt.Sprintf("%d a second asked; between the ends %d created and %d called a second, %d in the last 250 ms before an end (median)",
		o.rate, created*1000/up, called*1000/up, last[len(last)/2])
}

// finals is what the API tells at the end: tasks that did not succeed, the
// timers that there are, and what the auditor has counted.
func (o *owners) finals() (all []checker.Asked) {
	pages := func(path, list string, yield func(map[string]any)) {
		for cursor := ""; ; {
			a := checker.Asked{}
			out := o.ask(&a, "GET", path+"&limit=1000&cursor="+url.QueryEscape(cursor), nil)
			if !a.OK {
				o.t.Fatalf("GET %s: %d %v", path, a.Status, out)
			}
			for _, x := range out[list].([]any) {
				yield(x.(map[string]any))
			}
			if cursor, _ = out["next_cursor"].(string); cursor == "" {
				return
			}
		}
	}
	pages("/v1/tasks?status=failed,dead,skipped,missed,cancelled,unknown", "tasks", func(x map[string]any) {
		f := &checker.Final{Due: instant(x["due"]), Status: x["status"].(string)}
		if ended, ok := x["ended"]; ok {
			f.Ended = instant(ended)
		}
		f.Reason, _ = x["reason"].(string)
		if x["due_last"] != nil {
			f.DueLast = instant(x["due_last"])
		}
		for _, a := range x["attempts"].([]any) {
			n, _ := a.(map[string]any)["n"].(float64)
			f.Attempts = max(f.Attempts, int(n))
		}
		all = append(all, checker.Asked{Op: checker.Task, OK: true, Timer: x["timer_id"].(string), Final: f})
	})
	list := checker.Asked{Op: checker.List, OK: true, Invoked: time.Now().UnixMilli()}
	pages("/v1/timers?app=bench", "timers", func(x map[string]any) { list.IDs = append(list.IDs, x["id"].(string)) })
	audit := checker.Asked{Op: checker.Audit, OK: true, Violations: int64(o.p.metric("xtimer_audit_violations_total"))}
	return append(all, list, audit)
}

package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"xtimer/bench/checker"
)

// owners are those who own the timers of a run.
type owners struct {
	t    *testing.T
	p    *process
	w    *witness
	rate int // one-shots a second
	seed uint64
	keys int // of TestFlows

	mu   sync.Mutex
	mine []*owned // recurring timers
	shot []*owned // one-shots that may be deleted

	own []time.Duration // how late the machine's own timers were
}

// owned is a timer as its owner knows it.
type owned struct {
	id, name string
	def      checker.Definition
	disabled bool
	unsure   bool // a request of which nobody knows what became: it is left alone
}

var (
	retryOften     = checker.Retry{MaxAttempts: 3, Backoff: 200, Multiplier: 2, Jitter: 0.2}
	retryOftenSaid = map[string]any{"max_attempts": 3, "backoff": "200ms", "multiplier": 2, "jitter": 0.2} // as the API takes it
)

// write is a definition as the API takes it, and the hash of its request in d.
func (o *owners) write(name string, d *checker.Definition) map[string]any {
	n := names.Add(1)
	body, owner, contentType := fmt.Sprintf("%s %d", name, n), fmt.Sprintf("owner %d", n), []string{"text/plain", "application/x-owned"}[n%2]
	method := []string{"POST", "PUT", "PATCH"}[n%3]
	batch := d.Schedule.At != 0 && n%2 == 0 // with others, of whom only the body may differ
	if batch {
		owner, contentType, method = "owner of many", "text/plain", "PUT"
	}
	d.RequestSHA, d.Retry = sha(method, owner, contentType, []byte(body)), retryOften
	s, callback := map[string]any{}, map[string]any{
		"url": o.w.url, "method": method, "headers": map[string]string{"X-Owner": owner, "Content-Type": contentType}, "body_text": body,
	}
	if batch {
		callback["batch"] = map[string]any{"max": 50}
	}
	if d.Schedule.At == 0 { // what is disabled and changed: nothing of before may come for longer
		d.Timeout = 3000
		callback["timeout"] = "3s"
	}
	switch {
	case d.Schedule.At != 0:
		s["at"] = d.Schedule.At
	case d.Schedule.Every != 0:
		s["every"] = d.Schedule.Every
	default:
		s["cron"], s["time_zone"] = d.Schedule.Cron, d.Schedule.TimeZone
	}
	out := map[string]any{
		"schedule": s, "callback": callback, "retry": retryOftenSaid,
	}
	if d.Delivery != "" {
		out["delivery"] = d.Delivery
	}
	return out
}

// ask makes a request and writes down what came of it.
func (o *owners) ask(a *checker.Asked, method, path string, in any) (answer map[string]any) {
	var body bytes.Buffer
	if in != nil {
		json.NewEncoder(&body).Encode(in)
	}
	a.Invoked = time.Now().UnixMilli()
	req, _ := http.NewRequest(method, o.p.url(path), &body)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err == nil {
		err = json.NewDecoder(resp.Body).Decode(&answer)
		resp.Body.Close()
		a.Status = resp.StatusCode
	}
	a.Answered = time.Now().UnixMilli()
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		a.Failed = true
	case err != nil:
	case a.Status < 300:
		a.OK = true
	case a.Status < 500:
		a.Failed = true
	}
	return answer
}

// instant is 0 when it is not there: nothing was answered.
func instant(v any) int64 {
	s, _ := v.(string)
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0
	}
	return t.UnixMilli()
}

// recurring creates the timers that fire all the time.
func (o *owners) recurring(r *rand.Rand) {
	for i := range 24 {
		kind := []string{takes, takes, stumbles, drops}[i%4]
		x := &owned{name: fmt.Sprintf("%s-%d", kind, names.Add(1))}
		switch i % 3 {
		case 0:
			x.def.Schedule = checker.Schedule{Cron: "* * * * * *", TimeZone: "Europe/Berlin"}
		default:
			x.def.Schedule.Every = 100 + r.Int64N(200)
		}
		o.create(x, o.write(x.name, &x.def))
	}
}

// create creates a recurring timer.
func (o *owners) create(x *owned, in map[string]any) {
	in["app"], in["name"] = "bench", x.name
	def := x.def
	a := checker.Asked{Op: checker.Create, App: "bench", Name: x.name, Definition: &def}
	out := o.ask(&a, "POST", "/v1/timers", in)
	if !a.OK {
		o.t.Fatalf("create: %d %v", a.Status, out)
	}
	a.Timer, a.From, a.Anchor = out["id"].(string), instant(out["updated_at"]), instant(out["created_at"])
	x.id = a.Timer
	o.w.asked(a)
	o.mine = append(o.mine, x)
}

// steady is the rate that two cores create, fire and witness all the time. What is
// asked beyond it comes in bursts: created at this rate, due at the rate asked, for
// half a second each.
const steady = 5000

// creators create one-shots at a time.
const creators = 2

// due is when a one-shot is due that is created now: 0.5 to 2 s later, or in the
// next burst.
func (o *owners) due(now int64, r *rand.Rand) int64 {
	if o.rate <= steady {
		return now + 500 + r.Int64N(1500)
	}
	every := 500 * int64(o.rate) / steady
	return (now+500)/every*every + every + r.Int64N(500)
}

// load creates one-shots of all kinds at the share of one creator.
func (o *owners) load(done chan struct{}, r *rand.Rand) {
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
		e := json.NewEncoder(&b)
		now := time.Now()
		for range max(min(o.rate, steady)/20/creators, 1) {
			name := fmt.Sprintf("%s-%d", []string{takes, takes, takes, takes, takes, stumbles, drops, refuses, fails}[r.IntN(9)], names.Add(1))
			d := checker.Definition{Schedule: checker.Schedule{At: o.due(now.UnixMilli(), r)}}
			if r.IntN(8) == 0 {
				d.Delivery = "at_most_once"
			}
			in := o.write(name, &d)
			in["app"], in["name"] = "bench", name
			e.Encode(in)
			asked = append(asked, checker.Asked{
				Op: checker.Create, App: "bench", Name: name, Definition: &d, Invoked: now.UnixMilli(), From: now.UnixMilli(),
			})
		}
		ids, err := createBatch(o.p.url(""), b.Bytes())
		for i := range asked {
			a := &asked[i]
			a.Answered = time.Now().UnixMilli()
			switch {
			case err == nil:
				a.OK, a.Timer = true, ids[i]
			case errors.Is(err, syscall.ECONNREFUSED):
				a.Failed = true
			}
			o.w.asked(*a)
		}
		if err == nil {
			o.mu.Lock()
			o.shot = append(o.shot, &owned{id: ids[0]})
			o.mu.Unlock()
		}
	}
}

// change does things to timers, one at a time.
func (o *owners) change(done chan struct{}) {
	r := draw(o.seed, 2)
	for {
		select {
		case <-done:
			return
		case <-time.After(20 * time.Millisecond):
		}
		x := o.mine[r.IntN(len(o.mine))]
		if x.unsure {
			continue
		}
		def := x.def
		a := checker.Asked{Timer: x.id, Definition: &def}
		path := "/v1/timers/" + x.id
		switch n := r.IntN(10); {
		case n == 0: // a one-shot that may be due, or over
			o.deleteOne()
			continue
		case n < 3 && !x.disabled:
			a.Op = checker.Disable
			o.ask(&a, "POST", path+"/disable", nil)
			x.disabled = a.OK
		case x.disabled:
			a.Op = checker.Enable
			out := o.ask(&a, "POST", path+"/enable", nil)
			a.From = instant(out["updated_at"])
			x.disabled = !a.OK
		case n < 5: // another schedule
			a.Op = checker.Change
			def.Schedule = checker.Schedule{Every: 100 + r.Int64N(200)}
			for def.Schedule == x.def.Schedule {
				def.Schedule.Every++
			}
			in := o.write(x.name, &def)
			in["schedule"].(map[string]any)["cron"] = nil
			in["schedule"].(map[string]any)["time_zone"] = nil
			out := o.ask(&a, "PATCH", path, in)
			a.From = instant(out["updated_at"])
		case n < 7: // another body
			a.Op = checker.Change
			in := o.write(x.name, &def)
			o.ask(&a, "PATCH", path, map[string]any{"callback": in["callback"]})
		default:
			a.Op, a.Definition = checker.Get, nil
			out := o.ask(&a, "GET", path, nil)
			v, _ := out["version"].(float64)
			a.Version = int64(v)
		}
		if a.OK && a.Definition != nil {
			x.def = def
		}
		x.unsure = !a.OK && !a.Failed && a.Op != checker.Get
		o.w.asked(a)
	}
}

func (o *owners) deleteOne() {
	o.mu.Lock()
	if len(o.shot) == 0 {
		o.mu.Unlock()
		return
	}
	x := o.shot[len(o.shot)-1]
	o.shot = o.shot[:len(o.shot)-1]
	o.mu.Unlock()
	a := checker.Asked{Op: checker.Delete, Timer: x.id}
	out := o.ask(&a, "DELETE", "/v1/timers/"+x.id, nil)
	a.Result, _ = out["result"].(string)
	o.w.asked(a)
	a = checker.Asked{Op: checker.Get, Timer: x.id}
	o.ask(&a, "GET", "/v1/timers/"+x.id, nil)
	o.w.asked(a)
}

package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// shotOwner creates ten one-shots a second at any node, and deletes one of three about when
// the one-shot is due. It knows what was answered.
type shotOwner struct {
	x     *nodes
	stop  chan struct{}
	ended chan struct{}

	mu    sync.Mutex
	shots []*shot
}

// shot is a timer whose create was answered.
type shot struct {
	id           string
	due, created time.Time
	asked, gone  time.Time // the delete, and its 2xx: zero without
	begun        bool      // the delete's answer says that a call is in flight
}

func startShots(x *nodes, seed uint64) *shotOwner {
	o := &shotOwner{x: x, stop: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		var wg sync.WaitGroup
		r := draw(seed, 1)
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-o.stop:
				wg.Wait()
				return
			case <-tick.C:
			}
			at, by, deletes, wait := r.IntN(3), r.IntN(3), r.IntN(3) == 0, time.Duration(r.IntN(2200))*time.Millisecond
			wg.Go(func() { o.one(at, by, deletes, wait) })
		}
	}()
	x.t.Cleanup(o.end)
	return o
}

func (o *shotOwner) end() {
	select {
	case <-o.stop:
	default:
		close(o.stop)
	}
	<-o.ended
}

// one creates a one-shot that is due in 2 s at a node, and may delete it by another.
func (o *shotOwner) one(at, by int, deletes bool, wait time.Duration) {
	s := &shot{due: time.Now().Truncate(time.Millisecond).Add(2 * time.Second)}
	body := fmt.Sprintf(`{"app":"bench","name":"shot-%d","schedule":{"at":%d},"callback":{"url":%q,"timeout":"5s"}}`, names.Add(1), s.due.UnixMilli(), o.x.url)
	var answer struct{ ID string }
	if o.ask("POST", o.x.all[at].url("/v1/timers"), body, &answer) != 201 {
		return
	}
	s.id, s.created = answer.ID, time.Now()
	o.mu.Lock()
	o.shots = append(o.shots, s)
	o.mu.Unlock()
	if !deletes {
		return
	}
	time.Sleep(wait)
	asked := time.Now()
	var gone struct{ Result string }
	status := o.ask("DELETE", o.x.all[by].url("/v1/timers/"+s.id), "", &gone)
	o.mu.Lock()
	defer o.mu.Unlock()
	if s.asked = asked; status == 200 {
		s.gone, s.begun = time.Now(), gone.Result == "in_flight"
	}
}

func (o *shotOwner) ask(method, url, body string, answer any) int {
	q, _ := http.NewRequest(method, url, bytes.NewReader([]byte(body)))
	q.Header.Set("Content-Type", "application/json")
	r, err := client.Do(q)
	if err != nil {
		return 0
	}
	defer r.Body.Close()
	if json.NewDecoder(r.Body).Decode(answer) != nil {
		return 0
	}
	return r.StatusCode
}

// judge looks at the calls of all one-shots. What was acknowledged while MySQL went back may be lost.
func (o *shotOwner) judge(t *testing.T, lost func(time.Time) bool) {
	o.end()
	time.Sleep(4 * time.Second) // the last are due in two
	o.x.mu.Lock()
	defer o.x.mu.Unlock()
	deleted := 0
	for _, s := range o.shots {
		as := o.x.arrivals[fmt.Sprintf("%s_%d", s.id, s.due.UnixMilli())]
		switch {
		case lost(s.created) || !s.gone.IsZero() && lost(s.gone):
		case s.asked.IsZero() && len(as) == 0:
			t.Errorf("one-shot %s, due %v, was not called", s.id, s.due)
		case !s.gone.IsZero():
			deleted++
			for _, a := range as {
				if a.at.Sub(s.gone) > 250*time.Millisecond && !s.begun {
					t.Errorf("one-shot %s was called by node %d %v after its delete was answered", s.id, a.by, round(a.at.Sub(s.gone)))
				}
			}
		}
	}
	t.Logf("%d one-shots, %d of them deleted", len(o.shots), deleted)
	if deleted == 0 {
		t.Error("the owner could delete none")
	}
}

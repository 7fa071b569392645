package bench

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// poison are receivers whose calls end xtimer, so many times.
type poison struct {
	url string

	mu    sync.Mutex // guards all below
	left  map[string]int
	calls map[string][]string // X-Xtimer-Redelivered of each, by name
}

// startPoison has a call of a timer end the process, left times by its name; end is
// told how many are left.
func startPoison(t *testing.T, end func(left int), left map[string]int) *poison {
	p := &poison{left: left, calls: map[string][]string{}}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		name := r.Header.Get("X-Xtimer-Name")
		p.mu.Lock()
		defer p.mu.Unlock()
		p.calls[name] = append(p.calls[name], r.Header.Get("X-Xtimer-Redelivered"))
		if p.left[name]--; p.left[name] >= 0 {
			end(p.left[name])
		}
	}))
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

func (p *poison) made(name string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.calls[name]...)
}

// TestPoisonTimer calls timers at whose call xtimer is killed, while something
// starts it again at once, six times in a row for one of them. Each start gets as
// far as to fire. Half of the lives end the moment the poison comes, which may be
// before anything else is called; in the others it comes slowly, and the other
// timers are called beside it. All that is theirs is called, once or as a kill
// allows. The poison comes again, marked as such; what is at_most_once does not,
// and ends as unknown.
func TestPoisonTimer(t *testing.T) {
	beside(t)
	const times = 6
	ft := &failTrial{trial: trial{t: t, rate: setting("XTIMER_RATE", 100), intervals: 20}}
	ft.begin()
	ft.busy()
	p := startPoison(t, func(left int) {
		before, deadline := ft.r.total(), time.Now().Add(20*time.Second)
		for left%2 == 1 && ft.r.total() == before {
			if time.Now().After(deadline) {
				t.Error("no other timer was called while the poison was")
				break
			}
			time.Sleep(time.Millisecond)
		}
		ft.p.running.Load().Kill()
	}, map[string]int{"poison": times, "poison-once": 1})
	var once struct{ ID string }
	due := time.Now().Add(1500 * time.Millisecond)
	for _, body := range []string{
		fmt.Sprintf(`{"app":"bench","name":"poison-once","delivery":"at_most_once","schedule":{"at":%d},"callback":{"url":%q}}`, due.UnixMilli(), p.url),
		fmt.Sprintf(`{"app":"bench","name":"poison","schedule":{"at":%d},"callback":{"url":%q}}`, due.Add(time.Second).UnixMilli(), p.url),
	} {
		r, err := client.Post(ft.p.url("/v1/timers"), "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if once.ID == "" {
			err = json.NewDecoder(r.Body).Decode(&once)
		}
		r.Body.Close()
		if err != nil || r.StatusCode != http.StatusCreated {
			t.Fatalf("status %d: %v", r.StatusCode, err)
		}
	}
	for life := range times + 1 {
		select {
		case <-ft.p.done:
		case <-time.After(time.Minute):
			t.Fatalf("life %d: the poison was not called", life)
		}
		ft.up("") // it need not get ready before it is killed
	}
	ft.busy()
	ft.finish()
	ft.check(true)
	again := p.made("poison")
	for i, mark := range again {
		if mark != "" != (i > 0) {
			t.Errorf("call %d of the poison is marked %q", i+1, mark)
		}
	}
	if len(again) != times+1 {
		t.Errorf("the poison was called %d times", len(again))
	}
	if n := len(p.made("poison-once")); n != 1 {
		t.Errorf("what is at most once was called %d times", n)
	}
	var task struct{ Status string }
	r, err := client.Get(ft.p.url(fmt.Sprintf("/v1/tasks/%s_%d", once.ID, due.UnixMilli())))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(&task); err != nil || task.Status != "unknown" {
		t.Errorf("what is at most once is %q: %v", task.Status, err)
	}
}

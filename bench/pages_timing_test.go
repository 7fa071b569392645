package bench

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/tier/local"
)

// BenchmarkPages asks for every page of the console while 5,000 timers a second
// fire, over a store of 1,000,000 timers (each every six hours; 500 apps) with
// 10,000,000 tasks of the last two and a half days. Two visitors ask for a page
// each fifth of a second. It reports the page that took longest and how late the
// timers were; with -test.v all pages.
func BenchmarkPages(b *testing.B) {
	p, r := startProcess(b), startReceiver(b)
	p.kill()
	pages := fillStore(b, filepath.Join(p.dir, engine.ColdFolder), r.url, setting("XTIMER_TIMERS", 1_000_000))
	p.start()
	p.calm() // what was written in a minute is still being merged
	r.counting = true
	for i := range 500 {
		line := fmt.Sprintf(`{"app":"busy","name":"every-%d","schedule":{"every":"100ms"},"callback":{"url":%q}}`, i, r.url)
		if _, err := createBatch(p.url(""), []byte(line)); err != nil {
			b.Fatal(err)
		}
	}
	time.Sleep(5 * time.Second)
	r.reset()
	quiet := r.lateFor(10 * time.Second)
	r.reset()

	var mu sync.Mutex
	took := map[string][]time.Duration{}
	seconds := time.Duration(setting("XTIMER_SECONDS", 120)) * time.Second
	end := time.Now().Add(seconds)
	var visitors sync.WaitGroup
	for range 2 {
		visitors.Go(func() {
			for time.Now().Before(end) {
				page := pages[rand.IntN(len(pages))]
				asked := time.Now()
				resp, err := client.Get(p.url(page.path()))
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					b.Errorf("%s: status %d", page.name, resp.StatusCode)
				}
				mu.Lock()
				took[page.name] = append(took[page.name], time.Since(asked))
				mu.Unlock()
				time.Sleep(200 * time.Millisecond)
			}
		})
	}
	visitors.Wait()
	late := r.lateness(.5, .99)
	fires := float64(r.total()) / seconds.Seconds()
	slowest := time.Duration(0)
	for _, page := range pages {
		all := took[page.name]
		slices.Sort(all)
		if len(all) == 0 {
			b.Fatalf("%s was never asked for", page.name)
		}
		p95 := all[len(all)*95/100]
		slowest = max(slowest, p95)
		b.Logf("%-28s %4d times  p50 %6.1f  p95 %6.1f  max %6.1f ms", page.name, len(all), ms(all[len(all)/2]), ms(p95), ms(all[len(all)-1]))
	}
	b.ReportMetric(ms(slowest), "slowest-page-p95-ms")
	b.ReportMetric(fires, "fires/s")
	b.ReportMetric(ms(quiet[0]), "without-pages-p99-ms")
	b.ReportMetric(ms(late[0]), "lateness-p50-ms")
	b.ReportMetric(ms(late[1]), "lateness-p99-ms")
	b.ReportMetric(float64(r.early), "early")
}

// calm waits until the process has little to do, two minutes at most.
func (p *process) calm() {
	for range 60 {
		before := p.cpu()
		if time.Sleep(2 * time.Second); p.cpu()-before < 100*time.Millisecond {
			return
		}
	}
}

// lateFor is the p99 of the lateness of the calls of a while.
func (r *receiver) lateFor(d time.Duration) []time.Duration {
	time.Sleep(d)
	return r.lateness(.99)
}

// page is a page of the console: its path is another each time.
type page struct {
	name string
	path func() string
}

// fillStore writes timers and ten tasks of each into the cold store in dir, all
// settled, and tells the pages that show them.
func fillStore(b *testing.B, dir, url string, timers int) []page {
	const every = 6 * time.Hour
	ctx := context.Background()
	cold := local.New(local.Config{Dir: dir})
	if err := cold.Open(ctx); err != nil {
		b.Fatal(err)
	}
	now := time.Now().UnixMilli()
	// The i-th timer is due again from ten minutes to six hours from now.
	due := func(i, back int) int64 {
		return now + 600_000 + int64(i)*(every.Milliseconds()-600_000)/int64(timers) - int64(back)*every.Milliseconds()
	}
	app := func(i int) string { return fmt.Sprintf("app-%d", i%500) }
	name := func(i int) string { return fmt.Sprintf("order-%d-expire", i) }
	id := func(i int) engine.TimerID { return engine.TimerID(i + 1) }
	for i := 0; i < timers; {
		var cs []*engine.Change
		for ; len(cs) < 1000 && i < timers; i++ {
			t := &engine.Timer{Definition: engine.NewDefinition(), ID: id(i), Version: 1, Generation: 1}
			t.App, t.Name, t.Schedule.Every, t.Callback.URL = app(i), name(i), every, url
			t.Labels = []engine.Label{{Key: "team", Value: fmt.Sprint(i % 20)}}
			t.CreatedAt = due(i, 11)
			t.UpdatedAt = t.CreatedAt
			if err := engine.Resolve(t, nil, t.CreatedAt); err != nil {
				b.Fatal(err)
			}
			cs = append(cs, &engine.Change{Timer: t, ID: t.ID, At: t.CreatedAt})
		}
		for _, a := range cold.ApplyAll(ctx, cs) {
			if a.Err != nil {
				b.Fatal(a.Err)
			}
		}
	}
	task := func(i, back int) *engine.Task {
		at := due(i, back)
		t := &engine.Task{
			Key: engine.Key{Timer: id(i), Due: at}, App: app(i), Name: name(i), Generation: 1, Status: engine.Succeeded,
			Lateness: 300 * time.Microsecond, Ended: at + 2, Since: at,
			Attempts: []engine.Attempt{{N: 1, Started: at*1000 + 300, Took: time.Millisecond, Code: 200, Response: []byte("ok")}},
		}
		switch i % 400 { // two of 400 are failures
		case 0:
			t.Status, t.Attempts[0].Code, t.Attempts[0].ErrorClass = engine.Failed, 404, "status"
		case 1:
			t.Status, t.Attempts[0].Code, t.Attempts[0].ErrorClass = engine.Dead, 503, "status"
		}
		return t
	}
	for back := 10; back > 0; back-- {
		for i := 0; i < timers; {
			var s engine.Settlement
			for ; len(s.Tasks) < 10_000 && i < timers; i++ {
				t := task(i, back)
				s.Tasks = append(s.Tasks, engine.Record{Key: t.Key, Status: t.Status, Encoded: engine.AppendTask(nil, t)})
			}
			if err := cold.Settle(ctx, &s); err != nil {
				b.Fatal(err)
			}
		}
	}
	shards, err := cold.Shards(ctx)
	if err != nil {
		b.Fatal(err)
	}
	var s engine.Settlement
	for i, sh := range shards {
		s.Marks = append(s.Marks, engine.Mark{Shard: i, Fence: sh.Fence, W: now})
	}
	if err := cold.Settle(ctx, &s); err != nil {
		b.Fatal(err)
	}
	if err := cold.Close(); err != nil {
		b.Fatal(err)
	}

	any := func() int { return rand.IntN(timers) }
	failed := func() int { return any() / 400 * 400 }
	key := func(i int) string { return task(i, 1+rand.IntN(10)).Key.String() }
	fixed := func(path string) func() string { return func() string { return path } }
	return []page{
		{"overview", fixed("/")},
		{"what fires next", fixed("/upcoming")},
		{"what fires next, a minute", func() string {
			return "/upcoming?at=" + time.UnixMilli(now+int64(12+rand.IntN(40))*60_000).UTC().Format(time.RFC3339)
		}},
		{"timers", fixed("/timers")},
		{"timers of an app", func() string { return "/timers?app=" + app(any()) }},
		{"timers by name", func() string { return fmt.Sprintf("/timers?app=%s&name=order-%d", app(any()), rand.IntN(100)) }},
		{"timers by label", func() string { return fmt.Sprintf("/timers?label=team%%3D%d", rand.IntN(20)) }},
		{"timers by status", fixed("/timers?status=enabled")},
		{"timers, disabled: none", fixed("/timers?status=disabled")},
		{"timer", func() string { return "/timers/" + id(any()).String() }},
		{"timer, edit", func() string { return "/timers/" + id(any()).String() + "/edit" }},
		{"timer, new", fixed("/timers/new")},
		{"task", func() string { return "/tasks/" + key(any()) }},
		{"task, failed", func() string { return "/tasks/" + key(failed()) }},
		{"dead letters", fixed("/dead")},
		{"dead letters of an app", func() string { return "/dead?app=" + app(failed()) }},
		{"dead letters of a day", fixed("/dead?since=24h")},
		{"live", fixed("/live")},
		{"live, of an app", func() string { return "/live?app=" + app(any()) }},
		{"live, failures of an app", func() string { return "/live?status=dead&app=" + app(failed()+1) }},
		{"system", fixed("/system")},
	}
}

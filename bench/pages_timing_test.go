package bench

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"xtimer/engine/scheduler"
)

// BenchmarkPages asks for every page of the console, and for the lists of the API, while 5,000 timers a second
// fire, over a store of 1,000,000 timers (each every six hours; 500 apps) with
// 10,000,000 tasks of the last two and a half days. Two visitors ask for a page
// each fifth of a second. It reports the page that took longest and how late the
// timers were; with -test.v all pages.
func BenchmarkPages(b *testing.B) {
	p, r := startProcess(b), startReceiver(b)
	p.kill()
	f := fillStore(b, filepath.Join(p.dir, scheduler.ColdFolder), r.url, setting("XTIMER_TIMERS", 1_000_000))
	pages := append(pagesOf(f), listsOf(f)...)
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
	time.Sleep(10 * time.Second)
	alone := r.lateness(.99)
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
	b.ReportMetric(ms(alone[0]), "without-pages-p99-ms")
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

// page is a page of the console: its path is another each time.
type page struct {
	name string
	path func() string
}

// pagesOf are the pages that show what a store was filled with.
func pagesOf(f *filled) []page {
	one := func() int { return rand.IntN(f.timers) }
	failed := func() int { return one() / 400 * 400 }
	key := func(i int) string { return f.task(i, 1+rand.IntN(10)).Key.String() }
	fixed := func(path string) func() string { return func() string { return path } }
	return []page{
		{"overview", fixed("/")},
		{"what fires next", fixed("/upcoming")},
		{"what fires next, a minute", func() string {
			return "/upcoming?at=" + time.UnixMilli(f.now+int64(12+rand.IntN(40))*60_000).UTC().Format(time.RFC3339)
		}},
		{"upcoming, seven days", fixed("/upcoming/hours")},
		{"apps", fixed("/apps")},
		{"an app", func() string { return "/apps?app=" + f.app(one()) }},
		{"timers", fixed("/timers")},
		{"timers of an app", func() string { return "/timers?app=" + f.app(one()) }},
		{"timers by name", func() string { return fmt.Sprintf("/timers?app=%s&name=order-%d", f.app(one()), rand.IntN(100)) }},
		{"timers by label", func() string { return fmt.Sprintf("/timers?label=team%%3D%d", rand.IntN(20)) }},
		{"timers by status", fixed("/timers?status=enabled")},
		{"timers, sorted", fixed("/timers?sort=-name")},
		{"timers of an app, sorted", func() string { return "/timers?sort=next&app=" + f.app(one()) }},
		{"timers, disabled: none", fixed("/timers?status=disabled")},
		{"timer", func() string { return "/timers/" + f.id(one()).String() }},
		{"timer, edit", func() string { return "/timers/" + f.id(one()).String() + "/edit" }},
		{"timer, new", fixed("/timers/new")},
		{"task", func() string { return "/tasks/" + key(one()) }},
		{"task, failed", func() string { return "/tasks/" + key(failed()) }},
		{"dead letters", fixed("/dead")},
		{"dead letters of an app", func() string { return "/dead?app=" + f.app(failed()) }},
		{"dead letters of a day", fixed("/dead?since=24h")},
		{"tasks", fixed("/tasks")},
		{"tasks of an app", func() string { return "/tasks?app=" + f.app(one()) }},
		{"tasks, problems", fixed("/tasks?status=problems")},
		{"tasks of an hour", func() string {
			at := time.UnixMilli(f.now - int64(rand.IntN(20))*3600_000).UTC()
			return "/tasks?to=" + at.Format(time.RFC3339) + "&from=" + at.Add(-time.Hour).Format(time.RFC3339)
		}},
		{"tasks by code", fixed("/tasks?code=5xx")},
		{"tasks by text", func() string { return fmt.Sprintf("/tasks?q=order-%d", rand.IntN(100)) }},
		{"timers by a part of the name", func() string { return fmt.Sprintf("/timers?q=der-%d", rand.IntN(100)) }},
		{"a minute that has passed", func() string {
			return "/upcoming?at=" + time.UnixMilli(f.now-int64(2+rand.IntN(600))*60_000).UTC().Format(time.RFC3339)
		}},
		{"live", fixed("/live")},
		{"live, of an app", func() string { return "/live?app=" + f.app(one()) }},
		{"live, failures of an app", func() string { return "/live?status=dead&app=" + f.app(failed()+1) }},
		{"system", fixed("/system")},
		{"tasks", fixed("/tasks")},
		{"tasks of an app", func() string { return "/tasks?app=" + f.app(one()) }},
		{"tasks by code", fixed("/tasks?code=503")},
		{"tasks by text, rare", func() string { return "/tasks?q=" + f.name(one()) }},
	}
}

// listsOf are lists of the API, with filters that find much, little and nothing.
func listsOf(f *filled) []page {
	one := func() int { return rand.IntN(f.timers) }
	fixed := func(path string) func() string { return func() string { return path } }
	return []page{
		{"API: timers, total", fixed("/v1/timers?total=true")},
		{"API: timers of an app, total", func() string { return "/v1/timers?total=true&app=" + f.app(one()) }},
		{"API: timers by status, total", fixed("/v1/timers?total=true&status=enabled")},
		{"API: timers by text", fixed("/v1/timers?total=true&q=99")},
		{"API: timers by text, rare", func() string { return "/v1/timers?total=true&q=" + f.name(one()) }},
		{"API: timers of an app by text", func() string { return "/v1/timers?total=true&q=7-EXP&app=" + f.app(one()) }},
		{"API: timers, last tasks", fixed("/v1/timers?last_task=true")},
		{"API: 1,000 timers", fixed("/v1/timers?limit=1000")},
		{"API: 1,000 tasks", fixed("/v1/tasks?limit=1000")},
		{"API: tasks by code", fixed("/v1/tasks?code=4xx")},
		{"API: tasks by code, of an app", func() string { return "/v1/tasks?code=404&app=" + f.app(one()) }},
		{"API: tasks by text", fixed("/v1/tasks?q=99")},
		{"API: tasks by text, rare", func() string { return "/v1/tasks?q=" + f.name(one()) }},
		{"API: open dead letters", fixed("/v1/tasks?status=dead&dismissed=false&limit=1000")},
		{"API: dismissed: none", fixed("/v1/tasks?dismissed=true")},
		{"API: failures by class", fixed("/v1/tasks/failures?code=timeout")},
		{"API: tasks of a timer", func() string { return "/v1/tasks?timer_id=" + f.id(one()).String() }},
	}
}

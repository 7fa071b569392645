package console

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/httpapi/client"
)

var (
	nextPage  = regexp.MustCompile(`<a href="([^"]+)" id="next-page"`)
	firstPage = regexp.MustCompile(`<a id="first-page" href="([^"]+)"`)
	timerName = regexp.MustCompile(`>(t-\d+)</a>`)
)

const partSorted = `id="part-sorted"`

// follow goes from page to page, and gives the names that each shows.
func (v *visitor) follow(path string) (pages [][]string, part bool) {
	v.t.Helper()
	for path != "" {
		a := v.get(path)
		if a.status != http.StatusOK {
			v.t.Fatalf("%s: %d", path, a.status)
		}
		part = strings.Contains(a.body, partSorted)
		if first := firstPage.MatchString(a.body); first != (len(pages) > 0) {
			v.t.Errorf("%s: a link to the first page: %v", path, first)
		}
		var names []string
		for _, m := range timerName.FindAllStringSubmatch(a.body, -1) {
			names = append(names, m[1])
		}
		pages = append(pages, names)
		path = ""
		if m := nextPage.FindStringSubmatch(a.body); m != nil {
			path = strings.ReplaceAll(m[1], "&amp;", "&")
		}
	}
	return pages, part
}

// TestPaging: keyset pages in the API's order, each timer once.
func TestPaging(t *testing.T) {
	n := serve(t)
	v := n.visitor()
	var want []string
	for i := range 25 {
		want = append(want, fmt.Sprintf("t-%02d", i))
		n.timer("shop", want[i], "/ok")
	}
	pages, _ := v.follow("/timers?limit=10")
	got := slices.Concat(pages...)
	slices.Sort(got)
	if !slices.Equal(got, want) || len(pages) != 3 {
		t.Errorf("%d pages: %v", len(pages), pages)
	}
}

// TestSort: what is at most 1,000 timers is sorted whole, by every column; of more
// each page is, and says so.
func TestSort(t *testing.T) {
	n := serve(t)
	v := n.visitor()
	const many = 1000
	definitions := make([]client.Definition, many)
	for i := range definitions {
		// The order of the names is neither that of the dues nor of the ids.
		definitions[i] = client.Definition{
			App: "shop", Name: fmt.Sprintf("t-%04d", i*7%many), Callback: client.Callback{URL: "http://x/"},
			Schedule: client.Schedule{At: time.Now().Add(time.Duration(2000+i*13%many) * time.Hour)},
		}
	}
	results, err := n.api.CreateBatch(t.Context(), definitions)
	if err != nil || slices.ContainsFunc(results, func(r client.BatchResult) bool { return r.Error != nil }) {
		t.Fatal(err, results)
	}
	disabled, err := n.api.GetByName(t.Context(), "shop", "t-0500")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.api.Disable(t.Context(), disabled.ID, client.Disabling{}); err != nil {
		t.Fatal(err)
	}
	for sort, want := range map[string][2]string{ // the first, and the last
		"name":     {"t-0000", "t-0999"},
		"-name":    {"t-0999", "t-0000"},
		"status":   {"t-0500", "t-0999"}, // what is disabled, before what is enabled
		"next":     {"t-0000", "t-0500"}, // what is disabled has none; the first is due first
		"-updated": {"t-0500", "t-0000"},
	} {
		first, last := v.get("/timers?limit=2&sort="+sort).body, v.get("/timers?limit=2&offset=998&sort="+sort).body
		if strings.Contains(first, partSorted) || !strings.Contains(first, "1–2 / 1\u202f000") || !strings.Contains(last, "999–1\u202f000 / 1\u202f000") {
			t.Errorf("%s is not sorted whole: %s", sort, first)
		}
		a, z := timerName.FindAllStringSubmatch(first, -1), timerName.FindAllStringSubmatch(last, -1)
		if len(a) != 2 || len(z) != 2 || a[0][1] != want[0] || z[1][1] != want[1] {
			t.Errorf("%s: from %v to %v, want %v", sort, a, z, want)
		}
	}
	// Filtered, and from a page of the API's order; an offset beyond the end.
	pages, _ := v.follow("/timers?limit=50&name=t-01&sort=-name")
	if len(pages) != 2 || pages[0][0] != "t-0199" || pages[1][49] != "t-0100" {
		t.Errorf("%v", pages)
	}
	body := v.get("/timers?name=t-01&sort=name&cursor=x&offset=5000").body
	if got := timerName.FindAllStringSubmatch(body, -1); len(got) != 1 || got[0][1] != "t-0199" || !strings.Contains(body, "100–100 / 100") {
		t.Errorf("beyond the end: %v", got)
	}
	body = v.get("/timers?limit=400&sort=name&name=t-0&offset=40").body
	if !strings.Contains(body, `href="/timers?limit=400&amp;name=t-0&amp;sort=-name"`) || !strings.Contains(body, `<input type="hidden" name="sort" value="name">`) {
		t.Error("another order does not begin at the first page, or a search loses the order")
	}

	n.timer("shop", "t-1000", "/ok")
	pages, part := v.follow("/timers?limit=500&sort=-name")
	seen := slices.Concat(pages...)
	for _, page := range pages {
		slices.Reverse(page)
		if !slices.IsSorted(page) {
			t.Errorf("a page is not sorted: %v", page)
		}
	}
	if slices.Sort(seen); len(slices.Compact(seen)) != 1001 || !part {
		t.Errorf("%d timers, said so: %v", len(seen), part)
	}
	for lang, want := range map[string]string{"en": "Only this page is sorted", "zh": "仅对本页排序"} {
		body := v.get("/timers?sort=name", "Accept-Language", lang).body
		said := strings.Index(body, want)
		if said < 0 || said > strings.Index(body, "<table") {
			t.Errorf("%s: it does not say before the table that a page is sorted by itself", lang)
		}
		if strings.Contains(v.get("/timers", "Accept-Language", lang).body, want) {
			t.Errorf("%s: it says so where nothing is sorted", lang)
		}
	}
}

// TestSortIsBounded: however slowly the API finds what matches, the page comes; and what
// is too much to be sorted is not read.
func TestSortIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, each := range map[string]int{"few": 1, "many": 250, "too many": 50} {
			asked, total := 0, client.Total{Count: int64(each)}
			if name == "too many" {
				total.Count = mostSorted + 1
			}
			api := fakeAPI(func(r *http.Request) (int, any) {
				asked++
				time.Sleep(20 * time.Millisecond)
				return 200, client.TimerList{Timers: make([]client.Timer, min(each, asked+each)), NextCursor: "more", Total: &total}
			})
			begin := time.Now()
			page := api.page("/timers?sort=-next")
			if took := time.Since(begin); took > 200*time.Millisecond || !strings.Contains(page, partSorted) || !strings.Contains(page, `id="next-page"`) {
				t.Errorf("%s: %v, %d questions: %s", name, took, asked, page)
			}
			if name == "too many" && asked != 2 {
				t.Errorf("%d timers are counted and read with %d questions, want 2", total.Count, asked)
			}
		}
	})
}

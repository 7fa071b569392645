package console

import (
	"html"
	"strings"
	"testing"
)

// TestFailing: the list and the timer's page say how the last task ended, and the list
// can be cut to the timers that fail.
func TestFailing(t *testing.T) {
	n := serve(t)
	v := n.visitor()
	good, bad := n.timer("shop", "a-good", "/ok"), n.timer("shop", "b-bad", "/bad")
	n.timer("shop", "c-new", "/ok")
	n.run(good.ID)
	key := n.run(bad.ID).Key
	result := `<a href="/tasks/` + key + `"><span class="tag s-dead">dead</span></a>`
	for _, path := range []string{"/timers", "/timers?sort=name", "/timers/" + bad.ID} {
		if page := v.get(path).body; !strings.Contains(page, result) {
			t.Errorf("%s does not show the last result: %s", path, page)
		}
	}
	for _, path := range []string{"/timers?failing=yes", "/timers?failing=yes&sort=-name", "/timers?failing=yes&limit=1"} {
		page := v.get(path).body
		for last := page; ; page += last { // as a person turns the pages
			next := nextPage.FindStringSubmatch(last)
			if next == nil {
				break
			}
			last = v.get(html.UnescapeString(next[1])).body
		}
		if !strings.Contains(page, "b-bad") || strings.Contains(page, "a-good") || strings.Contains(page, "c-new") {
			t.Errorf("%s: %s", path, page)
		}
	}
}

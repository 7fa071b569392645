package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"xtimer/httpapi/client"
)

// TestCluster: the nodes and the owner of each shard are shown, names as texts.
func TestCluster(t *testing.T) {
	c := twoNodes()
	api := fakeAPI(func(r *http.Request) (int, any) {
		if r.URL.Path == "/v1/cluster" {
			return 200, c
		}
		return 404, nil
	})
	get := func(path, lang string, several bool) string {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
		r.Header.Set("Accept-Language", lang)
		New(Config{API: api, Cluster: several}).ServeHTTP(w, r)
		return w.Body.String()
	}
	page := get("/cluster", "en", true)
	for _, want := range []string{`<td class="o1" title="0: a">1</td>`, `<td class="o0" title="7: –">0</td>`, "10.0.0.2:8080", ">draining<", "→ drain<", "120 ms ago", `href="/cluster" aria-current="page"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q: %s", want, page)
		}
	}
	if n := strings.Count(page, `<td class="o2"`); n != 127 || strings.Contains(page, "<script>d") || strings.Contains(page, "<img") {
		t.Errorf("%d shards of b, or a script: %s", n, page)
	}
	if page := get("/cluster", "zh", true); !strings.Contains(page, ">正在移交<") {
		t.Error(page)
	}
	c = client.Cluster{Node: "a"}
	if page := get("/cluster", "en", false); strings.Contains(page, `href="/cluster"`) || !strings.Contains(page, "This server is not one of several nodes.") {
		t.Error(page)
	}
}

package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
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

// TestNodeActions: a node is drained and evicted once that is confirmed, by an admin of all apps.
func TestNodeActions(t *testing.T) {
	var asked []string
	api := fakeAPI(func(r *http.Request) (int, any) {
		if r.Method != http.MethodGet {
			asked = append(asked, r.Method+" "+r.URL.EscapedPath())
			return 200, twoNodes().Nodes[0]
		}
		return 200, twoNodes()
	})
	console := New(Config{API: api, Cluster: true})
	send := func(method string, form url.Values) (int, string) {
		w, r := httptest.NewRecorder(), httptest.NewRequest(method, "/cluster", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		console.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	_, page := send(http.MethodGet, nil)
	token := csrfInput.FindStringSubmatch(page)[1]
	for _, x := range []struct {
		action, confirmed string
		status            int
		want              string
	}{
		{"drain", "", 200, ""},
		{"evict", "", 200, ""},
		{"nonsense", "yes", 400, ""},
		{"drain", "yes", 303, "POST /v1/cluster/nodes/b%2F1/drain"},
		{"undrain", "", 303, "DELETE /v1/cluster/nodes/b%2F1/drain"},
		{"evict", "yes", 303, "POST /v1/cluster/nodes/b%2F1/evict"},
	} {
		asked = nil
		status, body := send(http.MethodPost, url.Values{"csrf": {token}, "node": {"b/1"}, "action": {x.action}, "confirmed": {x.confirmed}})
		if status != x.status || strings.Join(asked, ",") != x.want {
			t.Errorf("%+v: %d %v %s", x, status, asked, body)
		}
	}
	n := serveAs(t, target{}, Config{Cluster: true}, tokens...)
	if page := n.signedIn("all-read").get("/cluster").body; strings.Contains(page, `value="drain"`) || strings.Contains(page, `value="evict"`) || !strings.Contains(page, "10.0.0.2") {
		t.Error(page)
	}
}

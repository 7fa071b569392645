package notify

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"xtimer/engine/alert"
)

// A message goes through the proxy of its channel, which resolves the name in the URL; the
// password of the proxy is in nothing that is shown.
func TestProxy(t *testing.T) {
	var asked, authorization string
	status := http.StatusNoContent
	p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, authorization = r.Method+" "+r.RequestURI, r.Header.Get("Proxy-Authorization")
		w.WriteHeader(status)
		fmt.Fprintf(w, "no access for u with very-secret at http://u:very-secret@%s", r.Context().Value(http.LocalAddrContextKey))
	}))
	defer p.Close()
	values := map[string]string{"p": strings.Replace(p.URL, "://", "://u:very-secret@", 1), "bad": "p.invalid:3128"}
	var dialled []string
	s := New(Config{
		Secret:  func(_, name string) (string, bool) { v, ok := values[name]; return v, ok },
		Allowed: func(address string) error { dialled = append(dialled, address); return nil },
		Forbids: func(url string) error {
			if strings.HasPrefix(url, "http://10.") {
				return errors.New("10.0.0.1:80 may not be called")
			}
			return nil
		},
	})
	send := func(to, through string) alert.Result {
		t.Helper()
		asked, dialled = "", nil
		r := s.Send(t.Context(), &alert.Delivery{
			App: "shop", Message: alert.Message{Type: "test", ID: "1"},
			Channel: alert.Channel{Kind: "webhook", URL: alert.Text{Value: to}, Proxy: alert.Text{Secret: through}},
		})
		if strings.Contains(fmt.Sprint(r), "very-secret") {
			t.Errorf("the password is in %+v", r)
		}
		return r
	}
	if r := send("http://hook.invalid/x", "p"); !r.Delivered || asked != "POST http://hook.invalid/x" || authorization != "Basic dTp2ZXJ5LXNlY3JldA==" {
		t.Errorf("%+v: the proxy was asked %q, with %q", r, asked, authorization)
	}
	if len(dialled) != 1 || "http://"+dialled[0] != p.URL {
		t.Errorf("%v were dialled, want the proxy", dialled)
	}
	status = http.StatusProxyAuthRequired
	if r := send("http://hook.invalid/x", "p"); r.Delivered || r.Status != status || !strings.Contains(r.Answer, "no access for u") {
		t.Errorf("%+v", r)
	}
	if r := send("https://hook.invalid/x", "p"); r.Delivered || asked != "CONNECT hook.invalid:443" {
		t.Errorf("%+v: the proxy was asked %q", r, asked)
	}
	if r := send("http://10.0.0.1/x", "p"); r.Delivered || asked != "" || !strings.Contains(r.Error, "may not be called") {
		t.Errorf("%+v: the proxy was asked %q", r, asked)
	}
	if r := send("http://hook.invalid/x", "bad"); r.Delivered || !r.Final || !strings.Contains(r.Error, "proxy") {
		t.Errorf("%+v", r)
	}
	if r := send("http://hook.invalid/x", "none"); r.Error != "secret_missing" {
		t.Errorf("%+v", r)
	}
}

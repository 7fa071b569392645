package notify

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"xtimer/engine/alert"
)

// A channel that answers what it was asked does not bring its URL or its secret to light.
func TestAnswerWithoutSecrets(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "no hook http://%s%s or %s with topsecret", r.Host, r.RequestURI, r.RequestURI)
	}))
	defer s.Close()
	values := map[string]string{"url": s.URL + "/hook/very-secret?k=1", "sign": "topsecret"}
	to := New(Config{Secret: func(_, name string) (string, bool) { v, ok := values[name]; return v, ok }})
	r := to.Send(context.Background(), &alert.Delivery{
		App: "shop", Message: alert.Message{Type: "test", ID: "1"},
		Channel: alert.Channel{Kind: "feishu", URL: alert.Text{Secret: "url"}, Secret: alert.Text{Secret: "sign"}},
	})
	if r.Delivered || r.Answer != "no hook the URL or /… with …" || strings.Contains(fmt.Sprint(r), "secret") {
		t.Errorf("%+v", r)
	}
}

package callback

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
)

// Each attempt sends the value that the secret has then. Without one nothing is sent, and the outcome names it. A
// target that sends a secret back brings it into no outcome.
func TestSecretHeader(t *testing.T) {
	var got []string
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		io.WriteString(w, strings.Repeat("x", 1000)+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Authorization"))
	}))
	defer target.Close()
	value, there := "", false
	c, err := New(Config{Secret: func(app, name string) (string, bool) {
		if app != "shop" || name != "token" {
			t.Errorf("%s/%s was asked for", app, name)
		}
		return value, there
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tm := &engine.Timer{Definition: engine.NewDefinition(), ID: 1}
	tm.App, tm.Callback.URL, tm.Callback.Timeout = "shop", target.URL, 10*time.Second
	tm.Callback.Headers = []engine.Header{{Name: "A", Value: "b"}, {Name: "Authorization", Secret: "token"}}
	call := &engine.Call{Timer: tm, Key: engine.Key{Timer: 1, Due: 1}, Attempt: 1}

	if o := c.Call(call); o.Class != engine.ClassNotSent || o.ErrorClass != "secret_missing" || string(o.Response) != "token" || len(got) != 0 {
		t.Errorf("without the secret: %+v, %d sent", o, len(got))
	}
	for _, value = range []string{"Bearer hunter2-hunter2-hunter2", "Bearer hunter3"} {
		there = true
		o := c.Call(call)
		if o.Class != engine.ClassOK || got[len(got)-1] != value {
			t.Errorf("%+v, sent %q", o, got)
		}
		if strings.Contains(string(o.Response), "hunter") || strings.Contains(string(o.Response), "Bear") || len(o.Response) > maxResponse {
			t.Errorf("the outcome has the secret: %s", o.Response[1000:])
		}
	}
}

func TestWithoutSecrets(t *testing.T) {
	for answer, want := range map[string]string{
		"nothing":        "nothing",
		"a hunter2 b":    "a [secret] b",
		"ends in hunter": "ends in [secret]",
		"ends in hun":    "ends in hun",
		"":               "",
	} {
		if got := string(withoutSecrets([]byte(answer), []string{"", "hunter2"})); got != want {
			t.Errorf("%q became %q, want %q", answer, got, want)
		}
	}
}

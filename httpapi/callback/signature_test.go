package callback

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"xtimer/engine"
)

const (
	oldSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newSecret = "whsec_QfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

func TestSignature(t *testing.T) {
	cfg := Config{Secrets: map[string][]string{"billing": {newSecret, oldSecret}, "empty": {}}}
	for _, change := range []func(*engine.Timer){
		func(*engine.Timer) {},
		func(tm *engine.Timer) { tm.Callback.Method = "GET" },
		func(tm *engine.Timer) {
			tm.Callback.Body, tm.Callback.HasBody, tm.Callback.BodyKind = []byte("any \x00 thing."), true, engine.BodyBase64
		},
	} {
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(onTheWire(t, cfg, testCall("http://h/", change)))))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got := req.Header.Get("webhook-id"); got != "7354_1763658000250" {
			t.Errorf("webhook-id %q", got)
		}
		for _, secret := range []string{oldSecret, newSecret} {
			wh, err := standardwebhooks.NewWebhook(secret)
			if err != nil {
				t.Fatal(err)
			}
			if err := wh.VerifyIgnoringTimestamp(body, req.Header); err != nil {
				t.Errorf("%s: %v", secret, err)
			}
			if wh.VerifyIgnoringTimestamp(append(body, '!'), req.Header) == nil {
				t.Error("another body passed")
			}
		}
		other, err := standardwebhooks.NewWebhook("whsec_AfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
		if err != nil {
			t.Fatal(err)
		}
		if other.VerifyIgnoringTimestamp(body, req.Header) == nil {
			t.Error("another secret passed")
		}
	}
	for _, app := range []string{"empty", "other"} {
		if s := onTheWire(t, cfg, testCall("http://h/", func(tm *engine.Timer) { tm.App = app })); strings.Contains(s, "webhook") {
			t.Errorf("signed without a secret: %q", s)
		}
	}
}

func TestSecretsAreChecked(t *testing.T) {
	for _, secret := range []string{"", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!", "whsec_" + strings.Repeat("AAAA", 22)} {
		_, err := New(Config{Secrets: map[string][]string{"a": {oldSecret, secret}}})
		if err == nil || !strings.Contains(err.Error(), `secret 2 of app "a"`) || len(secret) > 8 && strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v", secret, err)
		}
	}
}

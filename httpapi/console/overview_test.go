package console

import (
	"regexp"
	"testing"
	"time"

	"xtimer/engine"
)

// held answers when it is let.
type held struct{ let chan struct{} }

func (h held) Call(*engine.Call) engine.Outcome {
	<-h.let
	return engine.Outcome{Sent: time.Now(), Code: 200}
}

// TestWaiting: the overview tells what waits from what is in a call, by those
// words.
func TestWaiting(t *testing.T) {
	h := held{make(chan struct{})}
	n := serveCalling(t, h)
	defer close(h.let)
	tm := n.timer("shop", "queue", "/ok")
	if _, err := n.api.Patch(t.Context(), tm.ID, map[string]any{"overlap": "queue"}); err != nil {
		t.Fatal(err)
	}
	for range 3 { // one is called, two wait for it
		if _, err := n.api.Run(t.Context(), tm.ID); err != nil {
			t.Fatal(err)
		}
	}
	v := n.visitor()
	tile := func(lang, id string) (name, count string) {
		m := regexp.MustCompile(`id="` + id + `"><dt>([^<]+)</dt><dd>([^<]+)</dd>`).FindStringSubmatch(v.get("/", "Accept-Language", lang).body)
		if m == nil {
			t.Fatalf("no %s on the overview", id)
		}
		return m[1], m[2]
	}
	n.until(func() bool {
		_, flying := tile("en", "in-flight")
		_, waiting := tile("en", "waiting")
		return flying == "1" && waiting == "2"
	})
	for lang, want := range map[string][2]string{"en": {"Waiting", "In flight"}, "zh": {"等待中", "进行中"}} {
		a, _ := tile(lang, "waiting")
		b, _ := tile(lang, "in-flight")
		if got := [2]string{a, b}; got != want {
			t.Errorf("%s: %v, want %v", lang, got, want)
		}
	}
}

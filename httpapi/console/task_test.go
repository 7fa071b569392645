package console

import (
	"strings"
	"testing"
)

// TestTaskPage shows them, without a script.
func TestTaskPage(t *testing.T) {
	n := serve(t)
	task := n.run(n.timer("shop", "stock", "/bad").ID)
	page := n.visitor().get("/tasks/" + task.Key).body
	for _, want := range []string{"TLS handshake", "1\u202f200 µs", "kept connection", "In the wheel", "Waiting for the first byte"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of a task lacks %q", want)
		}
	}
	if got := strings.Count(page, `<table class="phases">`); got != 2 {
		t.Errorf("%d of 2 attempts have their phases", got)
	}
}

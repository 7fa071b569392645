package access

import (
	"fmt"
	"testing"

	"xtimer/httpapi/problem"
)

// An app is forgotten when its last turn has ended, or was refused: a request may name any.
func TestTurnsForgetApps(t *testing.T) {
	refusal := &problem.Problem{}
	turns := NewTurns(1, 2, 0, refusal)
	for i := range 10 {
		app := fmt.Sprint("app", i)
		leave, err := turns.Take(t.Context(), app)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := turns.Take(t.Context(), app); err == nil {
			t.Errorf("app %d has two turns", i)
		}
		others, err := turns.Take(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := turns.Take(t.Context(), "third"); err == nil {
			t.Error("three turns in all")
		}
		others()
		leave()
	}
	if len(turns.of) != 0 {
		t.Errorf("%d apps are kept", len(turns.of))
	}
}

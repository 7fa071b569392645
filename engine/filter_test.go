package engine_test

import (
	"testing"

	"xtimer/engine"
)

// TestSearch: a search finds parts of names and of failures, in either case.
func TestSearch(t *testing.T) {
	timer := &engine.Timer{}
	timer.Name = "Order-Ärger-7"
	for part, want := range map[string]bool{"": true, "order-": true, "R-7": true, "ÄRGER": true, "ärger": false, "order-7": false, "Order-Ärger-7x": false} {
		if f := (engine.TimerFilter{Search: part}); f.Matches(timer) != want {
			t.Errorf("%q: %v", part, !want)
		}
	}
	task := &engine.Task{Name: "n", Reason: "max_attempts", Attempts: []engine.Attempt{
		{N: 1, ErrorClass: "timeout"}, {N: 2, Code: 503, ErrorClass: "status", Response: []byte("the Database is away")},
	}}
	for part, want := range map[string]bool{"database IS": true, "MAX_": true, "status": true, "timeout": false, "N": true} {
		if f := (engine.TaskFilter{Search: part}); f.Matches(task) != want {
			t.Errorf("%q: %v", part, !want)
		}
	}
	task.Attempts = append(task.Attempts, engine.Attempt{N: 3, Code: 200, Response: []byte("welcome")})
	if f := (engine.TaskFilter{Search: "welcome"}); f.Matches(task) {
		t.Error("the answer of a success is no failure")
	}
	if f := (engine.TaskFilter{CodeFrom: 200, CodeTo: 200}); !f.Matches(task) {
		t.Error("the code of the last attempt is not found")
	}
}

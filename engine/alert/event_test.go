package alert

import (
	"testing"

	"xtimer/engine"
)

// An event tells each reason, error class and HTTP status as the task has them.
func TestEvent(t *testing.T) {
	for _, reason := range append([]string{"", "no reason that is known"}, engine.Reasons...) {
		for _, class := range append([]string{""}, engine.ErrorClasses...) {
			for _, code := range []int{0, 200, 599, 999} {
				task := &engine.Task{Status: engine.Dead, Reason: reason, Attempts: []engine.Attempt{{Code: 1}, {Code: code, ErrorClass: class}}}
				ev := eventOf(task)
				b := briefOf(&ev)
				for _, ev := range []event{ev, b.named("", "")} {
					if ev.code() != code || ev.class() != class || ev.reason() != reason && reason != "no reason that is known" {
						t.Fatalf("%q %q %d: %q %q %d", reason, class, code, ev.reason(), ev.class(), ev.code())
					}
				}
			}
		}
	}
}

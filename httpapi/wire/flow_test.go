package wire

import (
	"strings"
	"testing"
	"time"

	"xtimer/engine"
)

func TestFlowKeys(t *testing.T) {
	const head = `{"app":"a","name":"n","schedule":{"every":"1s"},"callback":{"url":"http://h/"},"flow":`
	def := engine.NewDefinition()
	if err := DecodeTimer([]byte(head+`["user-17","stripe:eu/1"]}`), &def); err != nil {
		t.Fatal(err)
	}
	if b := string(appendDefinition([]byte{'{'}, &def)); !strings.Contains(b, `"flow":["user-17","stripe:eu/1"]`) {
		t.Errorf("%q, %s", def.Flow, b)
	}
}

func TestHolds(t *testing.T) {
	task := engine.Task{Lateness: 1500 * time.Millisecond, Attempts: []engine.Attempt{{N: 1, Phases: engine.Phases{Wheel: 1000, Hold: 1200 * time.Millisecond}}}}
	task.AddHolds([]engine.Hold{{By: "flow", Name: "stripe", Took: 1100 * time.Millisecond}, {By: "pause", Name: "shop", Took: 50 * time.Millisecond}})
	task.AddHolds([]engine.Hold{{By: "pause", Name: "shop", Took: 50 * time.Millisecond}})
	b := string(AppendTask(nil, &task))
	for _, want := range []string{`"held_ms":1200,"holds":[{"by":"flow","name":"stripe","ms":1100},{"by":"pause","name":"shop","ms":100}]`, `"wheel":1,"hold":1200000,"queue"`} {
		if !strings.Contains(b, want) {
			t.Errorf("%s is not in %s", want, b)
		}
	}
	if own := task.OwnLateness(); own != 300*time.Millisecond {
		t.Errorf("its own lateness is %v", own)
	}
	for range 2 * engine.MaxHolds {
		task.AddHolds([]engine.Hold{{By: "flow", Name: strings.Repeat("x", len(task.Holds)), Took: time.Millisecond}})
	}
	if len(task.Holds) != engine.MaxHolds || task.Held() != 1208*time.Millisecond {
		t.Errorf("%v", task.Holds)
	}
}

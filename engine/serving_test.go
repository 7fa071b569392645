package engine_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
)

// What cannot be taken now is refused with the reason: a start is worth waiting
// for, a stop is not.
func TestStartingOrStopping(t *testing.T) {
	begin(t, func(t *testing.T, w *world) {
		refuses := func(e *engine.Engine, why string) {
			t.Helper()
			d := timer("b", every(time.Hour))
			_, would := e.WouldPut(t.Context(), d, 0)
			for _, err := range []error{e.Create(t.Context(), d, nil).Err, would, e.Ready()} {
				var f *engine.Fault
				if !errors.As(err, &f) || f.Kind != engine.FaultUnavailable || !strings.HasPrefix(f.Detail, why) {
					t.Errorf("%v, want %q", err, why)
				}
			}
		}
		w.replies("a", slow(2*time.Second))
		w.make(timer("a", at(w.now()+10)))
		time.Sleep(time.Second)
		w.life.stop()
		time.Sleep(100 * time.Millisecond) // the call is in flight
		refuses(w.Engine, "the server is stopping")
		w.Engine = engine.New(engine.Config{Cold: w.cold})
		refuses(w.Engine, "the server is starting")
		if err := w.stop(); err != nil {
			t.Error(err)
		}
	})
}

package engine_test

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"xtimer/engine"
)

// A head is the timer without what only calls and readers need, and says how much
// that is.
func TestHead(t *testing.T) {
	whole := fullTimer()
	whole.Callback.Body = bytes.Repeat([]byte{'x'}, 512<<10)
	whole.StaleAfter = time.Second
	h := engine.Head(whole)
	if h.Payload() != whole.Payload() || int(h.Omitted) != whole.Payload() || h.Payload() != 512<<10+len("Abteama") {
		t.Errorf("a payload of %d bytes, the head says %d and lacks %d", whole.Payload(), h.Payload(), h.Omitted)
	}
	h.Callback.Headers, h.Callback.Body, h.Labels, h.Omitted = whole.Callback.Headers, whole.Callback.Body, whole.Labels, 0
	if !reflect.DeepEqual(h, whole) {
		t.Errorf("%+v", h)
	}
	defer func() {
		if recover() == nil {
			t.Error("a head was stored as a definition")
		}
	}()
	engine.AppendTimer(nil, engine.Head(whole))
}

// What is carried is whole up to a size, and then a head, from its stored form as
// from the timer.
func TestCarried(t *testing.T) {
	for _, n := range []int{0, 100, 3 << 10, 8 << 10, 512 << 10} {
		whole := fullTimer()
		whole.Callback.Body = bytes.Repeat([]byte{'x'}, n)
		stored := engine.AppendCarried([]byte("before"), engine.AppendTimer(nil, whole))
		if !bytes.Equal(stored[6:], engine.Carried(whole)) {
			t.Errorf("%d bytes are not carried as they are", n)
		}
		got, err := engine.DecodeTimer(stored[6:])
		if err != nil || got.Payload() != whole.Payload() || (got.Omitted == 0) != (n < 4<<10) {
			t.Errorf("%d: %+v, %v", n, got, err)
		}
	}
	if b := engine.AppendCarried(nil, make([]byte, 5000)); len(b) > engine.MaxCarried {
		t.Errorf("%d bytes of a garbled definition are carried", len(b))
	} else if _, err := engine.DecodeTimer(b); err == nil {
		t.Error("a garbled definition is read")
	}
}

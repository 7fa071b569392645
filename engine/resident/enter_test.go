package resident

import (
	"testing"
)

// The clock is set back while a call is being prepared, as during a slow dial: no byte is sent
// before the due. The task waits for it again, and has its first attempt then.
func TestNoByteBeforeTheDue(t *testing.T) {
	now := int64(10_000)
	m := New(quietConfig(&now))
	sh, lv := joined(t, m, everySecond())
	tk := sh.take(lv, 10_000, now)
	a, _, _ := m.Begin(tk, now, &Body{})
	if now -= 1800; a.Enter() {
		t.Fatal("a byte is sent 1.8 s before the due")
	}
	if tk.state != Retrying || len(tk.Attempts) != 0 || tk.busy {
		t.Errorf("the task is %v, with %d attempts", tk.state, len(tk.Attempts))
	}
	now = 10_000
	if sh.wake(tk.Key, now) != tk {
		t.Fatal("the task is not called at its due")
	}
	if a, _, _ = m.Begin(tk, now, &Body{}); a == nil || a.Attempt != 1 || !a.Enter() {
		t.Error("the first attempt is not made at the due")
	}
}

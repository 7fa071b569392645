package bench

import (
	"fmt"
	"testing"
	"time"
)

// TestBacklogBehindKill ends the process with SIGKILL beside many overdue calls of a
// mute target. After the start 100 overdue calls of another app do not wait for them:
// the service is ready within 3 s, and all 100 are made within 5 s.
func TestBacklogBehindKill(t *testing.T) {
	const ready, made = 3 * time.Second, 5 * time.Second
	for _, n := range byForm(t, []int{30_000}, []int{30_000, 1_000_000}) {
		t.Run(fmt.Sprintf("%d", n), func(t *testing.T) {
			p, mute, good := startProcess(t), listenMute(t), listen(t, 0)
			began := time.Now()
			shots(t, p, "stuck", mute, n, 0, func(i int) time.Time { return began })
			t.Logf("%d overdue after %v", n, round(time.Since(began)))
			due := time.Now().Add(3 * time.Second)
			owed := shots(t, p, "good", good, 100, 0, func(int) time.Time { return due })
			p.sit(time.Until(due.Add(-500 * time.Millisecond)))
			p.kill()
			time.Sleep(time.Until(due.Add(time.Second)))
			began = time.Now()
			took := p.start()
			missing := p.awaitCalls(good, owed, made-time.Since(began))
			t.Logf("ready after %v, %d of %d not called after %v", round(took), missing, len(owed), round(time.Since(began)))
			if took > ready || missing > 0 {
				t.Errorf("want it ready within %v and all called within %v", ready, made)
			}
		})
	}
}

package bench

import (
	"bytes"
	"syscall"
	"testing"
	"time"
)

// TestSuspended stops the process with SIGSTOP under load, as a machine that is
// suspended does, for longer than any disk may stall: it goes on as if no time had
// passed, all that was due is called, and only calls that were in flight come twice.
func TestSuspended(t *testing.T) {
	for _, lasts := range byForm(t, []time.Duration{12 * time.Second}, []time.Duration{3 * time.Minute, 70 * time.Second, 70 * time.Second}) {
		t.Run(lasts.String(), func(t *testing.T) {
			tr := &trial{t: t, rate: setting("XTIMER_RATE", 500), intervals: 20}
			tr.begin()
			tr.busy()
			tr.write()
			s := stop{down: time.Now()}
			signal := func(s syscall.Signal) {
				if err := tr.p.cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			signal(syscall.SIGSTOP)
			time.Sleep(lasts)
			signal(syscall.SIGCONT)
			tr.p.sit(2 * time.Second) // it has not ended
			s.up = time.Now()
			tr.stops = append(tr.stops, s)
			tr.finish()
			tr.check(true)
		})
	}
}

// write creates timers all the time, until the load ends, so that a commit to the
// disk is under way whenever the process is stopped.
func (tr *trial) write() {
	for range 8 {
		tr.work.Go(func() {
			for {
				select {
				case <-tr.done:
					return
				default:
				}
				var line bytes.Buffer
				oneShot(&line, tr.r.url, time.Now().Add(time.Hour), patience)
				_, _ = createBatch(tr.p.url(""), line.Bytes()) // nobody waits for its call
			}
		})
	}
	time.Sleep(200 * time.Millisecond)
}

package bench

import (
	"syscall"
	"testing"
	"time"

	"xtimer/tier/servertest"
)

// TestKill kills the real binary in the middle of firing, again and again:
// nothing is missing, nothing early, and every repeat stands beside a kill.
//
// XTIMER_KILLS and XTIMER_RATE make it longer and heavier.
func TestKill(t *testing.T) {
	beside(t)
	onEachStore(t, func(t *testing.T, args ...string) {
		tr := &trial{t: t, rate: setting("XTIMER_RATE", 500), intervals: 20}
		tr.begin(args...)
		tr.stop(setting("XTIMER_KILLS", 4), tr.p.kill)
		tr.finish()
		tr.check(true)
	})
}

// TestTerminate ends it with SIGTERM under load: nothing missing, no repeats.
func TestTerminate(t *testing.T) {
	beside(t)
	onEachStore(t, func(t *testing.T, args ...string) {
		tr := &trial{t: t, rate: setting("XTIMER_RATE", 500), intervals: 20}
		tr.begin(args...)
		tr.stop(setting("XTIMER_TERMS", 2), func() {
			if code := tr.p.terminate(); code != 0 {
				t.Errorf("exit status %d after SIGTERM", code)
			}
		})
		tr.finish()
		tr.check(false)
	})
}

// TestFrozen stops it under load with SIGSTOP, as a machine that is put to sleep or
// moved does, for less than what makes a misfire: what was due meanwhile is called
// afterwards, nothing is missing, nothing comes twice.
func TestFrozen(t *testing.T) {
	beside(t)
	tr := &trial{t: t, rate: setting("XTIMER_RATE", 500), intervals: 20}
	tr.begin()
	for range 2 {
		tr.busy()
		for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
			if err := tr.p.cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
		}
	}
	tr.finish()
	tr.check(false)
}

// onEachStore runs a trial with xtimer's own files and with servers.
func onEachStore(t *testing.T, run func(t *testing.T, args ...string)) {
	t.Run("local", func(t *testing.T) { run(t) })
	t.Run("servers", func(t *testing.T) {
		run(t, "--mysql-dsn", servertest.MariaDB(t).DSN("xtimer"), "--redis-addr", servertest.Redis(t).Addr())
	})
}

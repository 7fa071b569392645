package scheduler_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestWarmTierAwayAtStart: a warm tier that cannot be used from the start on is said at
// once, with the cause, and not again each second; the node is ready, with a warning.
func TestWarmTierAwayAtStart(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		var away atomic.Bool
		away.Store(true)
		w.warmFault.set(func(string) error {
			if away.Load() {
				return errors.New("WRONGPASS invalid username-password pair")
			}
			return nil
		})
		var logs safeLog
		w.config.Log = slog.New(slog.NewTextHandler(&logs, nil))
		w.start()
		time.Sleep(2 * time.Second)
		if got := logs.lines("WRONGPASS"); len(got) != 1 || !strings.Contains(got[0], "level=WARN") {
			t.Errorf("after 2 s the log has %q", got)
		}
		if err := w.Ready(); err != nil || len(w.Warnings()) != 1 || w.Warnings()[0].Code != "warm_tier_away" {
			t.Errorf("ready: %v, warnings: %v", err, w.Warnings())
		}
		time.Sleep(time.Minute)
		if got := logs.lines("WRONGPASS"); len(got) > 3 {
			t.Errorf("after a minute the log has %d lines", len(got))
		}
		away.Store(false)
		time.Sleep(time.Minute)
		if len(w.Warnings()) != 0 || len(logs.lines("the warm tier is filled")) != 1 {
			t.Errorf("when it is over: %v", w.Warnings())
		}
	})
}

// safeLog keeps what is logged.
type safeLog struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (l *safeLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// lines are those that have a text in them.
func (l *safeLog) lines(with string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, with) {
			found = append(found, line)
		}
	}
	return found
}

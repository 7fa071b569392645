package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A start waits for the clock only where a wrong one can do harm, and not for ever.
func TestClockGate(t *testing.T) {
	const most = 30 * time.Second
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for what, c := range map[string]struct {
		up     time.Duration // since the boot
		last   time.Time     // finished
		synced time.Duration // after so long; 0: never
		most   time.Duration
		err    error
		waits  time.Duration
		says   string
	}{
		"a restart":                         {up: 5 * time.Hour, last: now.Add(-time.Second), most: most},
		"a restart, the clock slewed back":  {up: 5 * time.Hour, last: now.Add(time.Second), most: most},
		"booted since, never synchronised":  {up: 20 * time.Second, last: now.Add(-time.Minute), most: most, waits: most, says: "starting although"},
		"booted since, synchronised later":  {up: 20 * time.Second, last: now.Add(-time.Minute), most: most, synced: 5 * time.Second, waits: 5 * time.Second, says: "is synchronised"},
		"the clock is behind the last due":  {up: 5 * time.Hour, last: now.Add(8 * time.Hour), most: most, waits: most, says: "starting although"},
		"booted since, not to wait":         {up: 20 * time.Second, last: now.Add(-time.Minute)},
		"booted since, synchronised":        {up: 20 * time.Second, last: now.Add(-time.Minute), most: most, synced: -1},
		"it cannot be read (a container)":   {up: 20 * time.Second, last: now.Add(-time.Minute), most: most, err: errors.ErrUnsupported},
		"booted since, waits by boot clock": {up: 20 * time.Second, last: now.Add(-time.Minute), most: time.Second, waits: time.Second, says: "starting although"},
	} {
		t.Run(what, func(t *testing.T) {
			var log bytes.Buffer
			waited := time.Duration(0)
			g := &clockGate{
				most:         c.most,
				synchronised: func() (bool, error) { return c.synced < 0 || c.synced > 0 && waited >= c.synced, c.err },
				sinceBoot:    func() (time.Duration, error) { return c.up + waited, nil },
				now:          func() time.Time { return now },
				sleep:        func(context.Context) { waited += 200 * time.Millisecond },
				log:          slog.New(slog.NewTextHandler(&log, nil)),
			}
			g.await(t.Context(), c.last)
			if waited != c.waits || !strings.Contains(log.String(), c.says) || c.says == "" && log.Len() > 0 {
				t.Errorf("waited %v, want %v: %s", waited, c.waits, &log)
			}
		})
	}
}

// The kernel of this machine tells, or says that it does not.
func TestClockGateHere(t *testing.T) {
	up, err := sinceBoot()
	if err == nil && up <= 0 {
		t.Errorf("%v since the boot", up)
	}
	ok, err := clockSynchronised()
	t.Logf("synchronised %v %v", ok, err)
}

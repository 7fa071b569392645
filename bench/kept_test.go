package bench

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"xtimer/bench/checker"
)

// keep saves what a trial that fails was asked, what arrived and when it was ended,
// in the checker's files: beside the data, what the failure is looked into with.
func (tr *trial) keep() {
	if !tr.t.Failed() {
		return
	}
	dir, err := os.MkdirTemp("", "xtimer-run-")
	if err == nil {
		err = tr.logs().Write(dir)
	}
	tr.t.Logf("what was asked and what arrived is kept in %s (%v)", dir, err)
}

func (tr *trial) logs() *checker.Logs {
	of := func(key string) (timer string, due int64) {
		timer, at, _ := strings.Cut(key, "_")
		due, _ = strconv.ParseInt(at, 10, 64)
		return timer, due
	}
	l := &checker.Logs{}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for k := range tr.acked {
		timer, due := of(k)
		l.Asked = append(l.Asked, checker.Asked{
			Op: checker.Create, OK: true, Timer: timer, Definition: &checker.Definition{Schedule: checker.Schedule{At: due}},
		})
	}
	tr.r.mu.Lock()
	defer tr.r.mu.Unlock()
	for k, arrivals := range tr.r.arrivals {
		timer, due := of(k)
		for _, at := range arrivals {
			l.Arrived = append(l.Arrived, checker.Arrived{Timer: timer, Due: due, At: at.UnixMicro()})
		}
	}
	for _, s := range tr.stops {
		l.Broken = append(l.Broken, checker.Broken{Fault: "stop", From: s.down.UnixMilli(), To: s.up.UnixMilli()})
	}
	return l
}

// TestFailedTrialKeepsItsLogs: each timer that was acknowledged, each call, each end.
func TestFailedTrialKeepsItsLogs(t *testing.T) {
	beside(t)
	f := &failed{TB: t}
	tr := &trial{t: f, rate: 100, intervals: 1}
	tr.begin()
	tr.busy()
	tr.stops = append(tr.stops, stop{down: time.UnixMilli(1000), up: time.UnixMilli(2000)})
	tr.finish()
	tr.p.kill()
	acked, calls := len(tr.acked), tr.r.total()
	for _, do := range slices.Backward(f.cleanup) {
		do()
	}
	kept := func(what string) string {
		_, rest, _ := strings.Cut(f.log, what+" is kept in ")
		dir, _, _ := strings.Cut(rest, " ")
		t.Cleanup(func() { os.RemoveAll(dir) })
		return dir
	}
	l, err := checker.Read(kept("what was asked and what arrived"))
	os.RemoveAll(filepath.Dir(kept("its data")))
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Asked) != acked || len(l.Arrived) != calls || acked < 100 || calls < 100 {
		t.Errorf("%d timers and %d calls are kept of %d and %d", len(l.Asked), len(l.Arrived), acked, calls)
	}
	if want := (checker.Broken{Fault: "stop", From: 1000, To: 2000}); len(l.Broken) != 1 || l.Broken[0] != want {
		t.Errorf("the end is kept as %+v", l.Broken)
	}
	if a := l.Arrived[0]; !slices.ContainsFunc(l.Asked, func(x checker.Asked) bool { return x.Timer == a.Timer }) || a.At < a.Due*1000 {
		t.Errorf("a call is kept as %+v", a)
	}
}

// TestKeepsWhatGoes: the data of a file system that goes with the test.
func TestKeepsWhatGoes(t *testing.T) {
	_, outside := smallFileSystem(t, 1<<20)
	if err := os.Mkdir(filepath.Join(outside, "journal"), 0o700); err != nil {
		t.Fatal(err)
	}
	dir, err := (&process{dir: outside}).keep()
	t.Cleanup(func() { os.RemoveAll(filepath.Dir(dir)) })
	if _, gone := os.Stat(filepath.Join(dir, "journal")); err != nil || gone != nil {
		t.Error(err, gone)
	}
}

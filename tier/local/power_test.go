package local

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"xtimer/tier/tiertest"
)

// TestPowerLoss loses the power before every write of a script until 200 of its
// steps have changed something, with 0, 30, 70 and 100 % of what was not synced on the disk:
// what was answered is there, and of a step in work all or nothing. A sweep is many
// transactions: cut in the middle, it can be made again, to the same end.
//
// The short form has fewer changes, and takes one write in powerStep.
func TestPowerLoss(t *testing.T) {
	changes := powerChanges
	disk := &cutDisk{MemFS: vfs.NewCrashableMem(), step: powerStep, percents: []int{0, 30, 70, 100}}
	if testing.Short() {
		changes /= 2
	} else if *every {
		changes, disk.step = 200, 1
	}
	s := small(disk.watched())
	s.cfg.MemTableBytes = 8 << 10 // logs are used again, tables written, files removed
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	disk.taken() // an opening is TestPowerLossWhileOpening's
	r := script(0)
	before, losses := dump(t, s), 0
	for i := int64(0); changes > 0; i++ {
		step := r.Step()
		step.Do(t, s)
		disk.answered.Add(1)
		after := dump(t, s)
		for _, c := range disk.taken() {
			losses++
			var again []tiertest.Step
			if c.answered == i && step.Name == "sweep" {
				again = append(again, step)
			}
			if got := reopened(t, c.fs, again...); got != after && (c.answered > i || got != before) {
				t.Fatalf("step %d, %s, of which %d were answered, before write %d, with %d %% of what was not synced: something is lost, or torn:\n%s",
					i+1, step.Name, c.answered, c.write, c.percent, tiertest.Diff(got, after))
			}
		}
		if after != before {
			changes--
		}
		before = after
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d losses of the power in %d writes", losses, disk.writes)
	if losses < 2*int(disk.writes/disk.step) { // opening and closing take a few
		t.Error("most writes are not of the script")
	}
}

// TestPowerLossWhileOpening loses the power before every write of an opening and a
// closing, with half of what was not synced on the disk.
func TestPowerLossWhileOpening(t *testing.T) {
	disk := vfs.NewCrashableMem()
	s := small(disk)
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := script(3)
	for range 10 {
		r.Step().Do(t, s)
	}
	want := dump(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for n := int64(1); ; n++ {
		var writes atomic.Int64
		var lost []*vfs.MemFS
		s := small(tiertest.Watch(disk, func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && writes.Add(1) == n {
				for seed := range uint64(4) {
					lost = append(lost, disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(seed, uint64(n)))}))
				}
			}
			return nil
		}))
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if lost == nil {
			t.Logf("an opening and a closing make %d writes", n-1)
			return
		}
		for _, fs := range lost {
			if got := reopened(t, fs); got != want {
				t.Fatalf("before write %d: %s", n, tiertest.Diff(got, want))
			}
		}
	}
}

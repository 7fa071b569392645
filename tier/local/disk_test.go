package local

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"xtimer/tier/tiertest"
)

// cutDisk is a disk of which copies are taken before one write in step of all that
// are made, as a loss of the power at that moment would leave it, one for each of
// percents. A sync is a write, and so are a rename and a close.
type cutDisk struct {
	*vfs.MemFS
	step     int64
	percents []int
	answered atomic.Int64 // how many steps of the script were

	mu     sync.Mutex
	writes int64
	cuts   []cut // since the last call of taken
}

// cut is what a loss of the power left.
type cut struct {
	fs       *vfs.MemFS
	write    int64 // before which write
	percent  int   // so much of what was not synced was kept
	answered int64 // how many steps had been answered
}

func (d *cutDisk) watched() vfs.FS {
	return tiertest.Watch(d, func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			d.write()
		}
		return nil
	})
}

// ReuseForWrite waits for a copy that is made: MemFS takes its lock twice here, and
// a copy that comes between would wait for ever.
func (d *cutDisk) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.MemFS.ReuseForWrite(old, name, c)
}

func (d *cutDisk) write() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.writes++; d.writes%d.step != 0 {
		return
	}
	for _, percent := range d.percents {
		answered := d.answered.Load() // before the copy: what was answered by then is in it
		rng := rand.New(rand.NewPCG(uint64(d.writes), uint64(percent)))
		d.cuts = append(d.cuts, cut{d.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng}), d.writes, percent, answered})
	}
}

func (d *cutDisk) taken() (cuts []cut) {
	d.mu.Lock()
	defer d.mu.Unlock()
	cuts, d.cuts = d.cuts, nil
	return cuts
}

package wal

import (
	"bytes"
	"context"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A bit is flipped, or a file cut or zeroed from some place on, in every kind
// of file: then a start fails, or finds all that was acknowledged.
func TestDamagedFiles(t *testing.T) {
	flips := 160
	if testing.Short() {
		flips = 60
	}
	if long {
		flips = 5000
	}
	base := vfs.NewCrashableMem()
	j := start(t, quiet(base))
	_, forgotten := script(j, 300)
	acked := uint64(j.Next())
	for range 20 { // the tail, one small group after another
		j.sync(j.Finish(nth(acked)))
		acked++
	}
	rnd := rand.New(rand.NewPCG(7, 7))
	copyOf := func() *vfs.MemFS {
		return base.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rnd})
	}
	for _, state := range []string{"killed", "closed"} {
		if state == "closed" {
			j.end()
		}
		names, err := base.List("/data/wal")
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string][2]int{} // refused, whole
		for _, name := range names {
			full := "/data/wal/" + name
			data, err := copyOf().UnsafeGetFileDataBuffer(full)
			if err != nil || len(data) == 0 {
				continue
			}
			for i := range flips / len(names) {
				fs := copyOf()
				data, _ := fs.UnsafeGetFileDataBuffer(full)
				if len(data) == 0 {
					continue // Pebble has removed it meanwhile
				}
				at := rnd.IntN(len(data))
				how := "flip"
				switch i % 8 {
				case 6:
					how = "zero"
					clear(data[at:])
				case 7:
					how = "cut"
					put(t, fs, full, bytes.Clone(data[:at]))
				default:
					data[at] ^= 1 << rnd.IntN(8)
				}
				kind := path.Ext(name)
				if kind == "" {
					kind, _, _ = strings.Cut(name, "-")
				}
				k := kinds[kind]
				if err := recoveredOrRefused(t, fs, acked, forgotten); err != nil {
					t.Errorf("%s, %s of %s at %d of %d: %v", state, how, name, at, len(data), err)
				} else if l := New(quiet(fs)); l.Open(context.Background()) != nil {
					k[0]++
				} else {
					_ = l.Close()
					k[1]++
				}
				kinds[kind] = k
			}
		}
		t.Logf("%s: refused, whole: %v", state, kinds)
	}
}

// recoveredOrRefused is recovered, where an error from Open or Replay will do.
func recoveredOrRefused(t *testing.T, fs vfs.FS, acked, forgotten uint64) error {
	l := New(quiet(fs))
	if l.Open(context.Background()) != nil {
		return nil
	}
	var r replayed
	err := l.Replay(false, r.begin, r.finish)
	_ = l.Close()
	if err != nil {
		return nil
	}
	return recovered(t, fs, acked, forgotten)
}

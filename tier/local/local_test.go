package local

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
	"xtimer/tier/tiertest"
)

func TestCold(t *testing.T) {
	tiertest.Cold(t, func(t *testing.T) engine.Cold {
		return New(Config{Dir: "/data/cold", FS: vfs.NewMem(), MemTableBytes: 1 << 20, StallAfter: time.Minute})
	})
}

func TestColdOnDisk(t *testing.T) {
	tiertest.Cold(t, func(t *testing.T) engine.Cold {
		return New(Config{Dir: t.TempDir() + "/cold", StallAfter: time.Minute}) // the machine may be busy
	})
}

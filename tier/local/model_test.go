package local

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
	"xtimer/tier/memory"
	"xtimer/tier/tiertest"
)

func TestModel(t *testing.T) {
	tiertest.Model(t,
		func() engine.Cold {
			return New(Config{Dir: "cold", FS: vfs.NewMem(), MemTableBytes: 1 << 18, StallAfter: time.Minute})
		},
		func() engine.Cold { return memory.NewCold() },
	)
}

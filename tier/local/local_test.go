package local

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
	"xtimer/tier/tiertest"
)

// TestCold flushes and merges tables now and then, and is on the disk of the machine.
func TestCold(t *testing.T) {
	tiertest.Cold(t, func(t *testing.T) engine.Cold {
		return New(Config{Dir: t.TempDir() + "/cold", MemTableBytes: 4 << 20, StallAfter: time.Minute}) // the machine may be busy
	})
}

// TestDamagedOwed damages rows in two ways: one is cut, and one is that of another task.
func TestDamagedOwed(t *testing.T) {
	for name, value := range map[string][]byte{
		"cut": {2, 1}, "moved": engine.AppendOwed(nil, &engine.Owed{Key: engine.Key{Timer: 77, Due: benchNow}}),
	} {
		t.Run(name, func(t *testing.T) {
			tiertest.DamagedOwed(t, func(t *testing.T) (engine.Cold, func(engine.Key)) {
				s := small(vfs.NewMem())
				return s, func(k engine.Key) {
					if err := s.db.Set(owedKey(nil, k), value, pebble.Sync); err != nil {
						t.Fatal(err)
					}
					// Readers see it after the next commit.
					if err := s.Settle(t.Context(), &engine.Settlement{Owner: "n", LeftOut: []int64{0}}); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

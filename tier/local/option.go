package local

import (
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// options of the database; what each bought is measured in tier/DESIGN.md.
func (s *Store) options() *pebble.Options {
	o := &pebble.Options{
		Cache:                       s.cfg.Cache,
		CacheSize:                   4 * int64(s.cfg.MemTableBytes),
		MemTableSize:                s.cfg.MemTableBytes,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       24,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                1000,
		WALBytesPerSync:             512 << 10,
		BytesPerSync:                512 << 10,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		// A name that is free costs one look at a filter, and the index to it
		// one level, not two.
		o.Levels[i].IndexBlockSize = 256 << 10
	}
	return o
}

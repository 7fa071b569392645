package local

import (
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// options of the database; what each bought is measured in tier/DESIGN.md.
func (s *Store) options() *pebble.Options {
	o := &pebble.Options{
		FS:     guardFS{s.cfg.FS, s.fatal, &s.armed},
		Cache:  s.cfg.Cache,
		Logger: s.fatal,
		// The default format hides a damaged log: it ends the replay early.
		FormatMajorVersion:          pebble.FormatNewest,
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
	o.EventListener = &pebble.EventListener{
		BackgroundError: s.backgroundError,
		// By default Pebble ends the process, at each read of one bad block of old
		// history; the readers report it as well.
		DataCorruption: func(i pebble.DataCorruptionInfo) {
			s.damage.say(s.cfg.Log, "the cold store is damaged", "dir", s.cfg.Dir, "detail", i.String())
		},
	}
	return o
}

// backgroundError slows Pebble down, which on a full disk would retry a flush, or
// a compaction, thousands of times a second. A commit waits for the lock that it
// holds meanwhile, so it takes as long.
func (s *Store) backgroundError(err error) {
	s.trouble.say(s.cfg.Log, "the cold store has trouble in the background", "dir", s.cfg.Dir, "error", err)
	time.Sleep(backgroundPause)
}

const backgroundPause = 100 * time.Millisecond

// seldom says what happens again and again, but not each time.
type seldom struct {
	mu   sync.Mutex
	last time.Time
}

// sayEvery is how far apart two lines of one kind are.
const sayEvery = 10 * time.Second

func (s *seldom) say(log *slog.Logger, msg string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.IsZero() || time.Since(s.last) >= sayEvery {
		s.last = time.Now()
		log.Error(msg, args...)
	}
}

// Package local is the embedded cold tier: definitions, progress and history
// on Pebble, in one directory of one process.
//
// One goroutine, the committer, writes. While it syncs a group of changes, the next
// group gathers. The committer judges the changes of a group in the order of
// arrival, against the database and the group's earlier changes, writes them in one
// batch, and answers each caller after the sync. Readers see the last state that is
// known to be durable, so that nobody acts on what a crash may take back.
//
// Package wal/disk keeps the folder and ends the process when its disk fails.
// tier/DESIGN.md has the table of keys and the measurements.
package local

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/wal/disk"
)

var _ engine.Cold = (*Store)(nil)

// Config of a store. Zero values mean the defaults stated.
type Config struct {
	Dir string // the store's own directory; made when missing
	// Cache may be shared with other stores; the caller keeps its reference. Default:
	// a cache of its own, as large as four memtables. Pebble counts the memtables of
	// all stores of a cache against it: a cache no larger than these holds no block.
	Cache *pebble.Cache
	// FS is the file system; default the machine's.
	FS vfs.FS
	// MemTableBytes is the size of one memtable; default 32 MB. The first that
	// is full is flushed while the next is written; at four, writers wait.
	MemTableBytes uint64
	// HistoryMaxBytes bounds history: beyond it Sweep drops the oldest hours,
	// whatever the retention. Default 20 GiB; negative: no bound.
	HistoryMaxBytes int64
	// StallAfter is how long a write waits for the disk before it is answered
	// with engine.ErrUnavailable, its outcome unknown; default 10 s.
	StallAfter time.Duration
	// AcceptLoss opens a store whose last commits are lost, instead of refusing it.
	AcceptLoss bool
	// Exit ends the process when the disk has failed; default os.Exit. The file
	// last_fatal in Dir has the reason.
	Exit func(code int)
	// Log says what is wrong with the disk; default slog.Default().
	Log *slog.Logger
}

// Store is the embedded cold tier.
type Store struct {
	cfg    Config
	folder *disk.Folder // set by Open
	db     *pebble.DB   // the folder's
	views  views
	queue  queue
	done   chan struct{} // closed when the committer has ended
	dead   chan struct{} // closed when the disk has failed; nothing is acknowledged after
	why    error         // stands when dead is closed
	state  state         // the committer's alone after Open
	sweep  sweep
}

// New builds a store; Open touches the disk.
func New(cfg Config) *Store {
	if cfg.FS == nil {
		cfg.FS = vfs.Default
	}
	if cfg.MemTableBytes == 0 {
		cfg.MemTableBytes = 32 << 20
	}
	if cfg.HistoryMaxBytes == 0 {
		cfg.HistoryMaxBytes = 20 << 30
	}
	if cfg.StallAfter == 0 {
		cfg.StallAfter = 10 * time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Store{cfg: cfg}
}

// Open makes or opens the database and starts the committer.
func (s *Store) Open(context.Context) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot open the store in %s: %w", s.cfg.Dir, err)
		}
	}()
	s.dead = make(chan struct{})
	f, err := disk.Open(disk.Config{
		Dir: s.cfg.Dir, Part: "cold", FS: s.cfg.FS, Options: s.options, AcceptLoss: s.cfg.AcceptLoss,
		BeforeSync: func() { failpoint.Hit("cold-in-commit") },
		Failed:     s.failed,
		Exit:       s.cfg.Exit, Log: s.cfg.Log,
	})
	if err != nil {
		return err
	}
	if err := s.load(f); err != nil {
		return errors.Join(err, f.Close())
	}
	s.folder, s.db = f, f.DB
	s.views.open(s.db, &s.state)
	s.queue.open(s.dead)
	s.done = make(chan struct{})
	go s.commitLoop()
	return nil
}

// failed notes why the process ends, and releases all who wait for a commit.
func (s *Store) failed(err error) {
	s.why = fmt.Errorf("the cold store's disk failed: %w", err)
	close(s.dead)
}

// load checks the format, reads what the committer keeps in memory, and holds it
// against the mark of the folder.
func (s *Store) load(f *disk.Folder) error {
	format, err := checkFormat(f.DB)
	if err != nil {
		return err
	}
	if err := s.state.load(f.DB); err != nil {
		return err
	}
	seq := s.state.stats.seq
	if _, err := f.CheckMark(seq, format >= secondFormat); err != nil {
		return err
	}
	if err := f.StartMark(seq); err != nil || format == formatVersion {
		return err
	}
	if err := indexLanes(f.DB); err != nil {
		return fmt.Errorf("cannot make the index of owed rows by lane: %w", err)
	}
	return f.DB.Set(formatKey, binary.AppendUvarint(nil, formatVersion), pebble.Sync)
}

// Close refuses new changes, answers those that were taken, and closes the database.
// It returns an error when the disk has failed, or does not take the last commit
// within twice StallAfter; the process should end then.
func (s *Store) Close() error {
	if s.done == nil {
		return nil
	}
	s.queue.close()
	stuck := time.NewTimer(2 * s.cfg.StallAfter)
	defer stuck.Stop()
	select {
	case <-s.done:
	case <-stuck.C:
		return fmt.Errorf("the disk has not taken the last commit for %v; closed without it: %w", 2*s.cfg.StallAfter, engine.ErrUnavailable)
	case <-s.dead:
		// Pebble may wait for ever for a disk that failed: leave it.
		return s.why
	}
	s.done = nil
	s.views.close()
	return s.folder.Close()
}

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

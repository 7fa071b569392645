// Package local is the embedded cold tier: definitions, progress and history
// on Pebble, in one directory of one process.
//
// One goroutine, the committer, writes. What arrived while it synced the former
// group is judged together, in the order of arrival, against the database and
// what the group itself holds already, goes into one batch, and each caller is
// answered after the sync. Readers read the last state that is known to be
// durable, so that nobody acts on what a crash may take back.
//
// tier/DESIGN.md has the table of keys and the measurements.
package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
)

var _ engine.Cold = (*Store)(nil)

// Config of a store. Zero values mean the defaults stated.
type Config struct {
	Dir string // the store's own directory; made when missing
	// Cache may be shared with other stores, and stays its owner's; default
	// one of its own, of four memtables. Pebble takes the memtables of all its stores
	// out of it: a cache that is no larger than them holds not one block.
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
	// AcceptLoss opens a store whose end was lost, instead of refusing it.
	AcceptLoss bool
	// Exit ends the process after the disk failed; default os.Exit. The file
	// last_fatal in Dir says why.
	Exit func(code int)
	// Log says what is wrong with the disk; default slog.Default().
	Log *slog.Logger
}

// Store is the embedded cold tier.
type Store struct {
	cfg   Config
	fatal *fatal
	armed atomic.Bool // the log may not fail any more: see guardFS
	db    *pebble.DB  // set by Open
	lock  *pebble.Lock
	acked *ackedFile // the committer's alone
	views views
	queue queue
	done  chan struct{} // closed when the committer has ended
	state state         // the committer's alone after Open
	sweep sweep

	trouble, damage seldom // what was said of them
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
	if cfg.Exit == nil {
		cfg.Exit = os.Exit
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Store{cfg: cfg}
}

// Open makes or opens the database and starts the committer.
func (s *Store) Open(context.Context) (err error) {
	fs, dir := s.cfg.FS, s.cfg.Dir
	if err := makeDir(fs, dir); err != nil {
		return fmt.Errorf("cannot make the data directory: %w", err)
	}
	if s.lock, err = pebble.LockDirectory(dir, fs); err != nil {
		if errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) {
			return fmt.Errorf("cannot lock the data directory %s: %w", dir, err)
		}
		return fmt.Errorf("another xtimer uses this data directory: %s", dir)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release())
		}
	}()
	s.fatal = &fatal{fs: fs, path: dir, exit: s.cfg.Exit, dead: make(chan struct{})}
	o := s.options()
	o.Lock = s.lock
	if o.Cache == nil {
		o.Cache = pebble.NewCache(4 * int64(s.cfg.MemTableBytes))
		defer o.Cache.Unref()
	}
	if s.db, err = openDB(dir, o); err != nil {
		return fmt.Errorf("cannot open the store in %s: %w", dir, err)
	}
	if err := s.load(); err != nil {
		return err
	}
	s.views.open(s.db, s.state.highest())
	s.queue.open(s.fatal.dead)
	s.done = make(chan struct{})
	s.armed.Store(true)
	go s.commitLoop()
	return nil
}

// load checks the format and reads what the committer keeps in memory.
func (s *Store) load() (err error) {
	if err := s.checkFormat(); err != nil {
		return err
	}
	if err := s.state.load(s.db); err != nil {
		return err
	}
	if s.acked, err = openAcked(s.cfg.FS, s.cfg.FS.PathJoin(s.cfg.Dir, "acked")); err != nil {
		return fmt.Errorf("cannot open the note of what was acknowledged: %w", err)
	}
	if got, want := s.state.stats.seq, s.acked.newest; got < want {
		if s.cfg.AcceptLoss {
			return s.acked.reset(got)
		}
		return fmt.Errorf("the store in %s ends at commit %d, but commit %d was acknowledged: its end is damaged or was lost; "+
			"restore a backup, or accept the loss", s.cfg.Dir, got, want)
	}
	return nil
}

// Close takes no more, answers what was taken, and closes the database. Of a
// disk that does not answer it leaves the rest: then the process should end.
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
	case <-s.fatal.dead:
		// Pebble may wait for ever for a disk that failed: leave it.
		return s.fatal.err()
	}
	s.done = nil
	s.views.close()
	s.armed.Store(false)
	return s.release()
}

// release gives back what Open has got so far.
func (s *Store) release() error {
	var errs []error
	if s.acked != nil {
		errs = append(errs, s.acked.close())
		s.acked = nil
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
		s.db = nil
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
		s.lock = nil
	}
	return errors.Join(errs...)
}

// openDB opens Pebble, which panics on some errors of the disk.
func openDB(dir string, o *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the disk failed: %v", r)
		}
	}()
	return pebble.Open(dir, o)
}

// makeDir makes a directory, and those above it, so that a power loss does not
// take them back.
func makeDir(fs vfs.FS, dir string) error {
	var above []string // the directories that get a new entry, from below
	for d := dir; ; d = fs.PathDir(d) {
		if _, err := fs.Stat(d); err == nil || fs.PathDir(d) == d {
			break
		}
		above = append(above, fs.PathDir(d))
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, d := range above {
		if err := syncDir(fs, d); err != nil {
			return err
		}
	}
	return nil
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

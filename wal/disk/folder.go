// Package disk keeps a Pebble store in a folder of its own, and ends the process
// rather than lie about what is in it.
//
// A Folder gives its owner, the journal or the embedded cold tier, the database
// itself and five promises:
//
//   - One process at a time has the folder (a lock), and no other user of the
//     machine can read it (mode 0700).
//   - When the folder is moved, deleted or replaced, the process ends, before it creates a
//     file elsewhere. See moved.go.
//   - After an error of a write or a sync of the log, of the manifest or of the
//     folder, the process ends (status 70): nobody knows what is durable then, and
//     a second sync may report success for what was lost. A start reads what is
//     there. See Fatalf and FS.
//   - A start that finds less than was durable refuses, unless the loss is
//     accepted. Pebble alone cannot see it: a log whose last blocks are damaged
//     looks to Pebble like a log that ends there, and so does a manifest. See Mark and
//     manifest.go.
//   - A backup is whole and was read once, or it is not there. See Backup.
//
// What does not end the process: a table that cannot be written (Pebble tries
// again, ten times a second at most), a damaged block (its reader gets an error),
// and an error of the disk that a backup is written to.
package disk

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Config of a Folder.
type Config struct {
	// Dir is the folder, made when missing. No default.
	Dir string
	// Part is what log lines call the store. No default.
	Part string
	// FS is the file system. No default.
	FS vfs.FS
	// Options returns the owner's options of Pebble: sizes, levels, caches. It is
	// called for each opening, also of a backup, when Dir exists. The folder sets the
	// file system, the format, the logger and the events.
	Options func() *pebble.Options
	// AcceptLoss opens a store whose end is lost, instead of refusing it.
	AcceptLoss bool
	// BeforeSync is called before each sync of the log or the folder. No default.
	BeforeSync func()
	// Failed is called once, before the process ends, with the reason. No default.
	Failed func(error)
	// Exit ends the process. Default os.Exit. The goroutine that called it never
	// goes on, even if Exit returns.
	Exit func(code int)
	// Log defaults to slog.Default().
	Log *slog.Logger

	stderr io.Writer // default os.Stderr
}

// Folder is an open store.
type Folder struct {
	// DB is the store itself.
	DB *pebble.DB

	cfg  Config
	log  *slog.Logger
	lock *pebble.Lock
	mark *Mark

	manifests manifestMark  // used with Pebble's lock of its manifest
	opened    inode         // of the lock's file; see moved.go
	closing   chan struct{} // closed by Close
	ended     sync.Once     // see Fatalf
	trouble   seldom
	damage    seldom

	mu     sync.Mutex // guards closed, and copies against Wait
	closed bool
	copies sync.WaitGroup // checkpoints under way
}

// Errors of a Folder.
var (
	// ErrLocked: another process, or another Folder of this one, has the folder.
	ErrLocked = errors.New("another xtimer uses this data directory")
	// ErrClosed: the folder is closed.
	ErrClosed = errors.New("the store is closed")
)

// Open locks the folder and opens the store in it; both are made when missing. A
// store of an older format of Pebble is raised to the present one.
func Open(cfg Config) (f *Folder, err error) {
	if cfg.Exit == nil {
		cfg.Exit = os.Exit
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.stderr == nil {
		cfg.stderr = os.Stderr
	}
	f = &Folder{cfg: cfg, log: cfg.Log.With("part", cfg.Part), closing: make(chan struct{})}
	if err := makeDir(cfg.FS, cfg.Dir); err != nil {
		return nil, fmt.Errorf("cannot make the folder: %w", err)
	}
	if f.lock, err = pebble.LockDirectory(cfg.Dir, cfg.FS); err != nil {
		if errors.Is(err, syscall.EAGAIN) || strings.Contains(err.Error(), "held by current process") {
			return nil, ErrLocked
		}
		return nil, fmt.Errorf("cannot lock the folder: %w", err)
	}
	if f.opened, err = inodeOf(cfg.FS, cfg.FS.PathJoin(cfg.Dir, lockName)); err == nil {
		err = f.open()
	}
	if err != nil {
		return nil, errors.Join(err, f.manifests.close(), f.lock.Close())
	}
	if f.opened != (inode{}) {
		go f.watch()
	}
	return f, nil
}

// open opens Pebble, which panics on some errors of the disk.
func (f *Folder) open() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the disk failed: %v", r)
		}
	}()
	if err := f.checkManifest(); err != nil {
		return err
	}
	o := f.options(FS{f.cfg.FS, f})
	o.Lock = f.lock
	f.DB, err = pebble.Open(f.cfg.Dir, o)
	return err
}

// options are the owner's, with what makes the store safe. The format is never
// Pebble's default, which takes a flipped bit in the log for the log's end and
// says nothing.
func (f *Folder) options(fs vfs.FS) *pebble.Options {
	o := f.cfg.Options()
	o.FS = fs
	o.FormatMajorVersion = pebble.FormatNewest
	o.Logger = logger{f}
	o.EventListener = &pebble.EventListener{
		BackgroundError: f.backgroundError,
		// By default Pebble ends the process, at each read of one bad block; the
		// readers report it as well.
		DataCorruption: func(i pebble.DataCorruptionInfo) {
			f.damage.say(f.log, "the store is damaged", "dir", f.cfg.Dir, "detail", i.String())
		},
	}
	return o
}

// Close waits for a checkpoint under way, and closes the store.
func (f *Folder) Close() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	close(f.closing)
	f.mu.Unlock()
	f.copies.Wait()
	var err error
	if f.mark != nil {
		err = f.mark.close()
	}
	return errors.Join(err, f.DB.Close(), f.manifests.close(), f.lock.Close())
}

// makeDir makes a folder and whatever is missing above it, and syncs all that is
// above it: a former start may have been killed between the two. Folders that
// were there before and cannot be opened are left alone.
func makeDir(fs vfs.FS, dir string) error {
	created := map[string]bool{}
	for at := dir; fs.PathDir(at) != at; at = fs.PathDir(at) {
		if _, err := fs.Stat(at); err == nil {
			break
		} else if !errors.Is(err, iofs.ErrNotExist) {
			return err
		}
		created[fs.PathDir(at)] = true
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for at := dir; fs.PathDir(at) != at; at = fs.PathDir(at) {
		up := fs.PathDir(at)
		if err := syncDir(fs, up); err != nil && (created[up] || !errors.Is(err, iofs.ErrPermission)) {
			return err
		}
	}
	return nil
}

// SyncDir makes the names in a folder of the operating system durable.
func SyncDir(dir string) error { return syncDir(vfs.Default, dir) }

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

package wal

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// formatVersion is of the keys; the values carry their own.
const formatVersion = 1

// Open opens the folder, creating it when missing, and verifies all that is in
// it: a journal that cannot be trusted is refused here and not later.
func (l *Log) Open(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("journal %s: %w", l.cfg.Dir, err), l.closeStore())
		}
	}()
	dir := l.cfg.Dir
	if err := makeDir(l.fs, dir); err != nil {
		return err
	}
	if l.lock, err = pebble.LockDirectory(dir, l.fs); err != nil {
		return lockError(dir, err)
	}
	if err := checkFormat(dir, l.fs); err != nil {
		return err
	}
	cache := l.cfg.Cache
	if cache == nil {
		cache = pebble.NewCache(1 << 20)
		l.cache = cache
	}
	opts := options(strictFS{l.fs, l}, l.memTable(), cache, l)
	opts.Lock = l.lock
	if l.db, err = pebble.Open(dir, opts); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	found, err := scan(l.db)
	if err != nil {
		return err
	}
	if err := l.checkTail(&found); err != nil {
		return err
	}
	l.pending.next, l.floor, l.firsts = found.next, found.floor, found.firsts
	l.wish = found.floor
	l.durable.Store(found.next)
	l.pending.maxGroup = int(min(1<<20, l.memTable()/4))
	l.mark, err = openWatermark(l.fs, l.fs.PathJoin(dir, watermarkName))
	return err
}

// Close closes the store, when the copy of a backup under way is made; Run must have
// ended. What was appended since is not kept.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.running {
		l.mu.Unlock()
		return errors.New("BUG: the journal is closed while it runs")
	}
	if l.err == nil {
		l.err = ErrEnded
	}
	l.release()
	l.mu.Unlock()
	l.copies.Wait()
	return l.closeStore()
}

func (l *Log) closeStore() (err error) {
	if l.mark != nil {
		err = l.mark.close()
		l.mark = nil
	}
	if l.db != nil {
		err = errors.Join(err, l.db.Close())
		l.db = nil
	}
	if l.lock != nil {
		err = errors.Join(err, l.lock.Close())
		l.lock = nil
	}
	if l.cache != nil {
		l.cache.Unref()
		l.cache = nil
	}
	return err
}

// options of the store. The format is never Pebble's default, which takes a
// flipped bit in its log for the log's end and says nothing.
func options(fs vfs.FS, memTable uint64, cache *pebble.Cache, l *Log) *pebble.Options {
	o := &pebble.Options{
		FS:                          fs,
		FormatMajorVersion:          pebble.FormatNewest,
		MemTableSize:                memTable,
		MemTableStopWritesThreshold: 3,
		Cache:                       cache,
		MaxOpenFiles:                128,
		MaxManifestFileSize:         4 << 20,
		Logger:                      storeLogger{l},
	}
	o.EventListener = &pebble.EventListener{
		BackgroundError: l.backgroundError,
		// By default Pebble ends the process; the readers report it as well.
		DataCorruption: func(i pebble.DataCorruptionInfo) {
			l.log.Error("the store is damaged", "dir", l.cfg.Dir, "detail", i.String())
		},
	}
	return o
}

const (
	maxMemTable = 16 << 20
	minMemTable = 256 << 10
)

// memTable is the size of a memtable. A log file is as large, and about eight
// of them can stand on the disk, so a small disk gets small ones.
func (l *Log) memTable() uint64 {
	if l.tables == 0 {
		l.tables = l.cfg.MemTable
		if u, err := l.fs.GetDiskUsage(l.cfg.Dir); err == nil && u.TotalBytes > 0 {
			l.tables = min(max(u.TotalBytes/256, minMemTable), l.tables)
		}
	}
	return l.tables
}

func lockError(dir string, err error) error {
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) || strings.Contains(err.Error(), "held by current process") {
		return fmt.Errorf("%w: %s", ErrLocked, dir)
	}
	return fmt.Errorf("lock: %w", err)
}

// checkFormat refuses a store of another Pebble format before anything is
// written to it. Pebble creates a store in its oldest format and raises that
// step by step, so one that a crash left on the way is let through: it has no
// watermark file yet.
func checkFormat(dir string, fs vfs.FS) error {
	desc, err := pebble.Peek(dir, fs)
	if err != nil || !desc.Exists || desc.FormatMajorVersion == pebble.FormatNewest {
		return err
	}
	if _, err := fs.Stat(fs.PathJoin(dir, watermarkName)); errors.Is(err, iofs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("it is in store format %d and this xtimer reads and writes only %d: "+
		"start the xtimer that wrote it, stop it cleanly, and begin with an empty folder",
		desc.FormatMajorVersion, pebble.FormatNewest)
}

// backgroundError slows Pebble down, which on a full disk would retry a flush
// 30,000 times a second. Commits do not need the lock it holds meanwhile,
// unless they have to wait for that flush anyway.
func (l *Log) backgroundError(err error) {
	l.log.Error("the store has trouble in the background", "dir", l.cfg.Dir, "error", err)
	time.Sleep(backgroundPause)
}

const backgroundPause = 100 * time.Millisecond

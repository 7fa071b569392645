package wal

import (
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"xtimer/engine"
	"xtimer/engine/failpoint"
	"xtimer/wal/disk"
)

// formatVersion is of the keys; the values carry their own.
const formatVersion = 1

// Open opens the folder, creating it when missing, and verifies all that is in
// it: a journal that cannot be trusted is refused here and not later. A journal
// that was closed may be opened again.
func (l *Log) Open(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("journal %s: %w", l.cfg.Dir, err)
		}
	}()
	f, err := disk.Open(disk.Config{
		Dir: l.cfg.Dir, Part: "wal", FS: l.cfg.FS, Options: l.options, AcceptLoss: l.cfg.AcceptDataLoss,
		BeforeSync: func() { failpoint.Hit("in-commit") },
		Failed:     func(err error) { l.broke(fmt.Errorf("journal %w", err)) },
		Exit:       l.cfg.Exit, Log: l.cfg.Logger,
	})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	found, err := scan(f.DB)
	if err != nil {
		return err
	}
	if err := l.checkTail(f, &found); err != nil {
		return err
	}
	l.begin(f, found)
	return nil
}

// begin goes on where what was found ends.
func (l *Log) begin(f *disk.Folder, found found) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.folder = f
	l.pending = pending{next: found.next, maxGroup: int(min(1<<20, l.memTable()/4))}
	l.told, l.wanted = urgeNone, 0
	if l.err == ErrEnded {
		l.err = nil
	}
	l.kept, l.wish = found.kept, found.kept.settled
	switch l.kept.keep, l.kept.bytes = l.cfg.Keep, keptMemTables*l.memTable(); {
	case l.cfg.Keep == 0:
		l.kept.w = nil
	case l.kept.w == nil:
		l.kept.w = &engine.Watermarks{}
	}
	l.durable.Store(found.next)
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
	f := l.folder
	l.mu.Unlock()
	if f == nil {
		return nil
	}
	return f.Close()
}

// Backup writes a consistent copy to a new folder and verifies it by reading
// all of it. The copy is a journal that can be opened in place of this one.
func (l *Log) Backup(ctx context.Context, dir string) error {
	l.mu.Lock()
	f, err := l.folder, l.err
	l.mu.Unlock()
	if err == nil {
		err = f.Backup(dir, l.durable.Load(), func(db *pebble.DB) (uint64, error) {
			failpoint.Hit("checkpoint")
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			found, err := scan(db)
			return found.next, err
		})
	}
	if errors.Is(err, disk.ErrClosed) {
		err = ErrEnded
	}
	if err != nil {
		return fmt.Errorf("back up the journal: %w", err)
	}
	return nil
}

// options of the store: the journal is read only at the start.
func (l *Log) options() *pebble.Options {
	return &pebble.Options{
		MemTableSize:                l.memTable(),
		MemTableStopWritesThreshold: 3,
		Cache:                       l.cfg.Cache,
		CacheSize:                   1 << 20,
		MaxOpenFiles:                128,
		MaxManifestFileSize:         4 << 20,
	}
}

const (
	maxMemTable = 16 << 20
	minMemTable = 256 << 10
	// keptMemTables is how many memtables what is forgotten may take, see kept.
	keptMemTables = 4
)

// memTable is the size of a memtable. A log file is as large, and about eight
// of them can stand on the disk, so a small disk gets small ones.
func (l *Log) memTable() uint64 {
	if l.tables == 0 {
		l.tables = l.cfg.MemTable
		if u, err := l.cfg.FS.GetDiskUsage(l.cfg.Dir); err == nil && u.TotalBytes > 0 {
			l.tables = min(max(u.TotalBytes/256, minMemTable), l.tables)
		}
	}
	return l.tables
}

package wal

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"

	"github.com/cockroachdb/pebble/v2"

	"xtimer/engine/failpoint"
)

// Backup writes a consistent copy to a new folder and verifies it by reading
// all of it. The copy is a journal that can be opened in place of this one.
// Copying the folder of a running journal would not do: files vanish meanwhile.
func (l *Log) Backup(ctx context.Context, dir string) (err error) {
	if _, err := l.fs.Stat(dir); err == nil {
		return fmt.Errorf("back up the journal: %s exists already", dir)
	} else if !errors.Is(err, iofs.ErrNotExist) {
		return fmt.Errorf("back up the journal: %w", err) // it may be there, and must not be removed
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("back up the journal: %w", err), l.fs.RemoveAll(dir))
		}
	}()
	if err := makeDir(l.fs, l.fs.PathDir(dir)); err != nil {
		return err
	}
	durable := l.durable.Load() // the copy holds at least these
	if err := l.checkpoint(dir); err != nil {
		return err
	}
	failpoint.Hit("checkpoint")
	if err := createWatermark(l.fs, dir, durable); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.verify(dir, durable)
}

// checkpoint copies the store, unless it is closed or about to be.
func (l *Log) checkpoint(dir string) (err error) {
	l.mu.Lock()
	if l.err != nil {
		defer l.mu.Unlock()
		return l.err
	}
	l.copies.Add(1)
	l.mu.Unlock()
	defer l.copies.Done()
	defer func() {
		// Pebble panics, without a lock, when it cannot sync the folder of the copy.
		if r := recover(); r != nil {
			var ok bool
			if err, ok = r.(error); !ok || !errors.As(err, new(copyError)) {
				panic(r)
			}
		}
	}()
	return l.db.Checkpoint(dir, pebble.WithFlushedWAL())
}

func (l *Log) verify(dir string, durable uint64) (err error) {
	cache := pebble.NewCache(1 << 20)
	defer cache.Unref()
	opts := options(l.fs, l.memTable(), cache, l)
	opts.ReadOnly = true
	db, err := pebble.Open(dir, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	found, err := scan(db)
	if err == nil && found.next < durable {
		err = fmt.Errorf("the copy ends after record %d of %d", found.next, durable)
	}
	return err
}

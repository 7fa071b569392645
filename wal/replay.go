package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"xtimer/engine"
	"xtimer/wal/disk"
)

// found is what a scan of the store found.
type found struct {
	version bool // the store says which format it has: it was used before
	kept    kept
	next    uint64
}

// scan verifies every group and that they follow one another without a gap.
func scan(db *pebble.DB) (f found, err error) {
	now := time.Now()
	v, ok, err := get(db, keyVersion)
	if err != nil {
		return f, err
	}
	if ok && (len(v) != 1 || v[0] != formatVersion) {
		return f, fmt.Errorf("it is in journal format %x and this xtimer reads and writes only %d", v, formatVersion)
	}
	f.version = ok
	v, ok, err = get(db, keyForgotten)
	if err != nil {
		return f, err
	}
	if ok {
		if len(v) != 8 {
			return f, fmt.Errorf("the note of what is forgotten has %d bytes", len(v))
		}
		f.kept.floor = binary.BigEndian.Uint64(v)
	}
	f.next = f.kept.floor
	err = eachGroup(db, func(first uint64, v []byte) error {
		count, err := checkGroup(first, v)
		if err != nil {
			return err
		}
		if first != f.next {
			return fmt.Errorf("group at position %d: position %d should come next, there is a gap", first, f.next)
		}
		f.kept.add(first, len(v), now)
		f.next += count
		return nil
	})
	if err != nil {
		return f, err
	}
	if v, ok, err = get(db, keySettled); err != nil || !ok {
		f.kept.settled = f.kept.floor
		return f, err
	}
	settled, w, err := readNote(v)
	f.kept.settled, f.kept.w = min(max(settled, f.kept.floor), f.next), w
	return f, err
}

func get(db *pebble.DB, key []byte) (v []byte, ok bool, err error) {
	b, done, err := db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	v = append(v, b...)
	return v, true, done.Close()
}

// eachGroup reads all groups in order; v is valid until fn returns.
func eachGroup(db *pebble.DB, fn func(first uint64, v []byte) error) (err error) {
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{groupPrefix}, UpperBound: []byte{groupPrefix + 1}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		k := it.Key()
		if len(k) != 9 {
			return fmt.Errorf("key %q is not one of a group", k)
		}
		v, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if err := fn(binary.BigEndian.Uint64(k[1:]), v); err != nil {
			return err
		}
	}
	return it.Error()
}

// Replay reads all that is not forgotten, in order; kept: after what is forgotten and
// kept. What finished gets is valid until it returns.
func (l *Log) Replay(kept bool, begun func(engine.Begun) error, finished func(task []byte) error) error {
	l.mu.Lock()
	settled := l.kept.settled
	l.mu.Unlock()
	return eachGroup(l.folder.DB, func(first uint64, v []byte) error {
		if first < settled && !kept {
			return nil
		}
		if err := decodeGroup(first, v, begun, finished); err != nil {
			return fmt.Errorf("journal %s: %w", l.cfg.Dir, err)
		}
		return nil
	})
}

// checkTail holds what was found against the mark, and prepares both for what
// comes. The mark is there before the store says that it was used.
func (l *Log) checkTail(f *disk.Folder, found *found) error {
	marked, err := f.CheckMark(found.next, found.version)
	if err != nil {
		return err
	}
	if marked > found.next {
		if err := l.concede(f.DB, found, marked); err != nil {
			return err
		}
	}
	if err := f.StartMark(found.next); err != nil || found.version {
		return err
	}
	return f.DB.Set(keyVersion, []byte{formatVersion}, pebble.Sync)
}

// concede puts the loss on record, in a group without records, so that
// positions go on where they were.
func (l *Log) concede(db *pebble.DB, f *found, marked uint64) error {
	l.log.Error("records of the journal are lost, which was accepted", "dir", l.cfg.Dir, "from", f.next, "to", marked)
	g := &group{}
	g.reset(f.next, time.Time{})
	g.count = marked - f.next
	if err := db.Set(groupKey(g.first), g.seal(kindLost), pebble.Sync); err != nil {
		return err
	}
	f.kept.add(g.first, len(g.b), time.Now())
	f.next = marked
	return nil
}

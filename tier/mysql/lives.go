package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"xtimer/engine"
)

// Lives pages through every timer that stands or has a version kept: as of one
// instant, so that a change meanwhile is in it whole or not at all.
func (s *Store) Lives(ctx context.Context, after engine.TimerID, limit int) (ls []engine.Life, err error) {
	if limit <= 0 {
		return nil, nil
	}
	err = s.read(ctx, "read the lives of timers", func(ctx context.Context) error {
		tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // it only read
		if ls, err = s.lives(ctx, tx, after, limit); err != nil && limit == 1 {
			err = ofTimer(ctx, tx, after, err)
		}
		return err
	})
	return ls, err
}

// ofTimer gives damage the id of the first timer after one.
func ofTimer(ctx context.Context, tx *sql.Tx, after engine.TimerID, err error) error {
	var d *engine.Damage
	if !errors.As(err, &d) {
		return err
	}
	ids, lost := lifeIDs(ctx, tx, after, 1)
	if len(ids) == 1 {
		d.Key.Timer = ids[0]
	}
	return errors.Join(err, lost)
}

// lifeIDs are the ids of timers that stand or have a version kept.
func lifeIDs(ctx context.Context, tx *sql.Tx, after engine.TimerID, limit int) ([]engine.TimerID, error) {
	var ids []engine.TimerID
	collect := func(rows *sql.Rows) error {
		var id engine.TimerID
		err := rows.Scan(&id)
		ids = append(ids, id)
		return err
	}
	for _, q := range []string{
		"SELECT id FROM timers WHERE id>%d ORDER BY id LIMIT %d",
		"SELECT DISTINCT timer FROM versions WHERE timer>%d ORDER BY timer LIMIT %d",
	} {
		if err := scan(ctx, tx, fmt.Sprintf(q, after, limit), collect); err != nil {
			return nil, err
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return ids[:min(len(ids), limit)], nil
}

// lives reads the first of a page: as many as have no more bytes than a page should, or
// one. A timer may have any number of versions of 512 KiB.
func (s *Store) lives(ctx context.Context, tx *sql.Tx, after engine.TimerID, limit int) ([]engine.Life, error) {
	ids, err := lifeIDs(ctx, tx, after, limit)
	if err == nil && len(ids) > 1 {
		ids, err = s.cutToPage(ctx, tx, ids)
	}
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return livesOf(ctx, tx, ids)
}

// cutToPage leaves the first ids whose timers and versions have no more bytes than a page
// should, one at least. It looks at a bounded number of versions.
func (s *Store) cutToPage(ctx context.Context, tx *sql.Tx, ids []engine.TimerID) ([]engine.TimerID, error) {
	list := string(appendIDs(nil, ids))
	sizes := map[engine.TimerID]int{}
	n, last := 0, ids[0]
	add := func(rows *sql.Rows) error {
		var size int
		err := rows.Scan(&last, &size)
		sizes[last] += size
		n++
		return err
	}
	if err := scan(ctx, tx, "SELECT id,LENGTH(definition) FROM timers WHERE id IN "+list, add); err != nil {
		return nil, err
	}
	n = 0
	err := scan(ctx, tx, fmt.Sprintf("SELECT timer,LENGTH(definition) FROM versions WHERE timer IN %s ORDER BY timer,version LIMIT %d", list, sweepPiece), add)
	if err != nil {
		return nil, err
	}
	if n == sweepPiece { // of the last, and of those behind it, there may be more
		at, _ := slices.BinarySearch(ids, last)
		ids = ids[:max(at, 1)]
	}
	size := sizes[ids[0]]
	for i, id := range ids[1:] {
		if size += sizes[id]; size > s.pageBytes {
			return ids[:i+1], nil
		}
	}
	return ids, nil
}

func livesOf(ctx context.Context, tx *sql.Tx, ids []engine.TimerID) ([]engine.Life, error) {
	ls, places := make([]engine.Life, len(ids)), make(map[engine.TimerID]int, len(ids))
	for i, id := range ids {
		ls[i].ID, places[id] = id, i
	}
	list := string(appendIDs(nil, ids))
	err := scan(ctx, tx, "SELECT timer,deleted,definition FROM versions WHERE timer IN "+list+" ORDER BY timer,version", func(rows *sql.Rows) error {
		var id engine.TimerID
		var deleted int64
		var b sql.RawBytes
		if err := rows.Scan(&id, &deleted, &b); err != nil {
			return err
		}
		t, err := engine.DecodeCarried(b)
		if err != nil {
			return &rowError{damaged("versions", id, err)}
		}
		l := &ls[places[id]]
		l.Versions, l.Deleted = append(l.Versions, t), deleted
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ls, scan(ctx, tx, selectRow+" WHERE id IN "+list, func(rows *sql.Rows) error {
		id, b, _, err := scanEncoded(rows)
		if err != nil {
			return err
		}
		t, err := engine.DecodeTimer(b)
		if err != nil {
			return &rowError{damaged("timers", id, err)}
		}
		l := &ls[places[id]]
		l.Versions, l.Deleted = append(l.Versions, t), 0
		return nil
	})
}

package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"

	"xtimer/engine"
	"xtimer/engine/policy"
)

// Settle stores results and progress in one transaction, behind the fence of this process
// and those of the shards: where one has moved on, nothing is stored.
func (s *Store) Settle(ctx context.Context, st *engine.Settlement) error {
	marks, err := mergeMarks(st.Marks)
	if err != nil {
		return err
	}
	records, leftOut := s.sample(st)
	paid, newest := slices.Clone(st.Pay), st.Newest()
	slices.SortFunc(paid, compareKeys)
	owe := slices.Clone(st.Owe)
	slices.SortStableFunc(owe, func(a, b engine.Owed) int { return compareKeys(a.Key, b.Key) })
	slot := int64(slotBeside)
	if !st.Beside {
		slot = slotSettle
		if err := s.read(ctx, "settle the commits in doubt", func(ctx context.Context) error { return s.doubts.settleAll(ctx, s.db) }); err != nil {
			return err
		}
	}
	if st.Replayed && len(records) > 0 {
		if err := s.expectHistory(ctx); err != nil {
			return err
		}
	}
	err = s.write(ctx, "settle", slot, func(t *transaction) error {
		if err := s.mark(t, st.Owner, marks); err != nil {
			return err
		}
		records, owe := records, owe
		if st.Replayed {
			var err error
			if records, err = laterRecords(t, records); err != nil {
				return err
			}
			if owe, err = laterOwed(t, owe); err != nil {
				return err
			}
		}
		if err := payOwed(t, paid); err != nil {
			return err
		}
		if err := putOwed(t, owe); err != nil {
			return err
		}
		if err := leaveOut(t, leftOut); err != nil {
			return err
		}
		if err := s.putTasks(t, records); err != nil {
			return err
		}
		return note(t, &s.newest.used, s.slot(slot), newest)
	})
	if err == nil {
		for _, m := range marks {
			s.marked[m.Shard].Store(max(s.marked[m.Shard].Load(), m.W))
			s.heard(m.W)
		}
	}
	return err
}

// mergeMarks leaves one mark a shard, in order. Two fences of one shard cannot
// both be right.
func mergeMarks(in []engine.Mark) (ms []engine.Mark, err error) {
	ms = slices.Clone(in)
	slices.SortStableFunc(ms, func(a, b engine.Mark) int { return cmp.Compare(a.Shard, b.Shard) })
	kept := ms[:0]
	for _, m := range ms {
		if m.Shard < 0 || m.Shard >= engine.Shards {
			return nil, fmt.Errorf("there is no shard %d", m.Shard)
		}
		n := len(kept)
		switch {
		case n == 0 || kept[n-1].Shard != m.Shard:
			kept = append(kept, m)
		case kept[n-1].Fence != m.Fence:
			return nil, engine.ErrFenced
		default:
			kept[n-1].W = max(kept[n-1].W, m.W)
		}
	}
	return kept, nil
}

// mark moves watermarks forward, where the shards are this life's, with their fences, and
// have the watermarks that it stored. The holder is looked at as well, since a server that
// takes over from one whose last commits it has not got may give out a fence twice.
func (s *Store) mark(t *transaction, owner string, ms []engine.Mark) error {
	if len(ms) == 0 {
		return nil
	}
	mine := s.life.Load()
	if mine != nil { // the mark relies on all that this life has committed: rows, intents, changes
		if err := mine.has(t.ctx, t.tx, mine.commits()); err != nil {
			return err
		}
	}
	b := append(t.buf[:0], "UPDATE shards SET watermark=GREATEST(watermark,"...)
	b = byShard(b, ms, func(m engine.Mark) int64 { return m.W })
	b = append(b, "),owner="...)
	b = appendBytes(b, owner)
	if mine != nil {
		b = append(b, ",former=0"...)
	}
	b = append(b, " WHERE shard IN ("...)
	for i, m := range ms {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendInt(b, int64(m.Shard))
	}
	b = append(b, ") AND fence="...)
	b = byShard(b, ms, func(m engine.Mark) int64 { return int64(m.Fence) })
	if mine != nil {
		b = strconv.AppendUint(append(b, " AND holder="...), mine.id, 10)
		b = append(b, " AND watermark>="...)
		b = byShard(b, ms, func(m engine.Mark) int64 { return s.marked[m.Shard].Load() })
	}
	t.buf = b
	n, err := t.affect(string(b))
	if err == nil && int(n) != len(ms) {
		err = s.whyNotMarked(t)
	}
	return err
}

// byShard writes a value of each mark: one number where all have it, which is the common
// case.
func byShard(b []byte, ms []engine.Mark, of func(m engine.Mark) int64) []byte {
	first := of(ms[0])
	if !slices.ContainsFunc(ms, func(m engine.Mark) bool { return of(m) != first }) {
		return appendInt(b, first)
	}
	b = append(b, "CASE shard"...)
	for _, m := range ms {
		b = append(b, " WHEN "...)
		b = appendInt(b, int64(m.Shard))
		b = append(b, " THEN "...)
		b = appendInt(b, of(m))
	}
	return append(b, " END"...)
}

// errWentBack is the end of a process whose database has lost what the process stored.
var errWentBack = fmt.Errorf("%w: %w", engine.ErrFenced, &engine.Fault{
	Kind: engine.FaultUnavailable, Code: "database_went_back",
	Detail: "MySQL has lost results that were stored: it was restored from a backup, or a replica without the last commits was promoted",
})

// whyNotMarked is the error of shards that are not as this life left them.
func (s *Store) whyNotMarked(t *transaction) error {
	shards := make([]engine.Shard, engine.Shards)
	if err := t.scan(selectShards, readShards(shards)); err != nil {
		return err
	}
	if s.life.Load() != nil {
		for i := range shards {
			if shards[i].Watermark < s.marked[i].Load() {
				return errWentBack
			}
		}
	}
	return engine.ErrFenced
}

// sample picks the records that are kept, in the order of the table, and adds the minutes
// of the others to those left out: what is asked of history later does not depend on the
// setting of then.
func (s *Store) sample(st *engine.Settlement) (records []engine.Record, leftOut []int64) {
	rs, leftOut := slices.Clone(st.Tasks), slices.Clone(st.LeftOut)
	if n := uint64(max(s.cfg.SampleSuccesses, 1)); n > 1 {
		rs = slices.DeleteFunc(rs, func(r engine.Record) bool {
			// By the key, so that a repeat leaves out the same.
			h := (uint64(r.Key.Timer)*0x9E3779B97F4A7C15 ^ uint64(r.Key.Due)) * 0xBF58476D1CE4E5B9
			if h>>32%n == 0 || r.Kept || !succeededAtOnce(&r) {
				return false
			}
			if m := r.Key.Due - r.Key.Due%minute; !slices.Contains(leftOut, m) {
				leftOut = append(leftOut, m)
			}
			return true
		})
	}
	slices.Sort(leftOut)
	slices.SortStableFunc(rs, func(a, b engine.Record) int {
		return cmp.Or(cmp.Compare(a.Key.Due, b.Key.Due), cmp.Compare(a.Key.Timer, b.Key.Timer))
	})
	return rs, leftOut
}

// succeededAtOnce reports whether the first call of a task succeeded. One that failed before
// may be no row of owed: a retry that comes soon is settled with it.
func succeededAtOnce(r *engine.Record) bool {
	if r.Status != engine.Succeeded {
		return false
	}
	t, err := engine.DecodeTask(r.Encoded)
	return err == nil && t.LastAttempt() <= 1
}

// putTasks stores records of history; the later of one key stays.
func (s *Store) putTasks(t *transaction, rs []engine.Record) error {
	return t.insert(&s.inserts.tasks, len(rs), func(args []any, i int) []any {
		r := &rs[i]
		return append(args, r.Key.Due, int64(r.Key.Timer), int64(r.Status), failureOf(r), r.Encoded)
	})
}

// failureOf is the column failure of a record: 1 of a failure, 2 of dues that were skipped as
// misfires, 0 of all else.
func failureOf(r *engine.Record) int64 {
	switch {
	case r.Status.IsFailure():
		return 1
	case r.Status == engine.Skipped:
		if t, err := engine.DecodeTask(r.Encoded); err == nil && t.IsMisfire() {
			return 2
		}
	}
	return 0
}

// laterRecords picks those records of a journal that say more than what is
// stored.
func laterRecords(t *transaction, rs []engine.Record) ([]engine.Record, error) {
	ranks, err := readRanks(&t.buf, " FOR UPDATE", len(rs), func(i int) engine.Key { return rs[i].Key }, t.scan)
	if err != nil {
		return nil, err
	}
	later, err := policy.LaterRecords(rs, ranks)
	if err != nil {
		return nil, &rowError{err}
	}
	return later, nil
}

// laterOwed picks those rows that say no less than what is owed already.
func laterOwed(t *transaction, rows []engine.Owed) ([]engine.Owed, error) {
	stored := map[engine.Key]*engine.Owed{}
	err := keyed(&t.buf, "SELECT "+owedColumns+" FROM owed", keyColumns, " FOR UPDATE", len(rows),
		func(b []byte, i int) []byte { return appendKey(b, rows[i].Key) },
		func(q string) error {
			return t.scan(q, func(rows *sql.Rows) error {
				o, err := scanOwed(rows)
				stored[o.Key] = &o
				return err
			})
		})
	if err != nil {
		return nil, err
	}
	return policy.LaterRows(rows, func(k engine.Key) *engine.Owed { return stored[k] }), nil
}

func compareKeys(a, b engine.Key) int {
	return cmp.Or(cmp.Compare(a.Timer, b.Timer), cmp.Compare(a.Due, b.Due))
}

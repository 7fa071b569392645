package mysql

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"xtimer/engine"
)

// slotsMade is how many slots the tables counts, ids and fences have.
const slotsMade = 64

// write writes what the group leaves: rows that change are deleted and inserted
// again, so that names may wander between them, and a name or a key that
// somebody else took meanwhile is a duplicate, never a row overwritten.
func (g *group) write(t *transaction) error {
	var gone []engine.TimerID
	var rows []*row
	var unlabelled, labelled []label
	var counts [3]int64
	for _, id := range slices.Sorted(maps.Keys(g.timers)) {
		st := g.timers[id]
		if st.before == st.after {
			continue
		}
		if st.before != nil {
			counts[st.before.timer.Status]--
		}
		if st.after != nil {
			counts[st.after.timer.Status]++
		}
		if st.before.isSame(st.after) {
			continue
		}
		if st.before != nil {
			gone = append(gone, id)
		}
		if st.after != nil {
			rows = append(rows, st.after)
		}
		was, is := labelsOf(st.before), labelsOf(st.after)
		if !slices.Equal(was, is) {
			unlabelled, labelled = append(unlabelled, was...), append(labelled, is...)
		}
	}
	steps := []func() error{
		func() error { return deleteByID(t, "timers", "id", gone) },
		func() error {
			return t.insert(&g.s.inserts.timers, len(rows), func(args []any, i int) []any { return rows[i].values(args) })
		},
		func() error { return unlabel(t, unlabelled) },
		func() error {
			return t.many("INSERT INTO labels (name,value,timer) VALUES (", "),(", ")", len(labelled), func(b []byte, i int) []byte {
				return labelled[i].append(b)
			})
		},
		func() error { return g.writeVersions(t) },
		func() error { return g.writeOnce(t) },
		func() error { return g.writeOwed(t) },
		func() error { return g.writeTasks(t) },
		func() error { return count(t, g.slot, counts) },
		func() error { return g.writeFeed(t) },
		func() error { return g.noteRemoved(t) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func deleteByID(t *transaction, table, column string, ids []engine.TimerID) error {
	return t.many("DELETE FROM "+table+" WHERE "+column+" IN (", ",", ")", len(ids), func(b []byte, i int) []byte {
		return appendID(b, ids[i])
	})
}

// label is a row of the table labels.
type label struct {
	engine.Label
	timer engine.TimerID
}

func labelsOf(r *row) (ls []label) {
	if r == nil {
		return nil
	}
	for _, l := range r.timer.Labels {
		ls = append(ls, label{l, r.timer.ID})
	}
	return ls
}

func (l *label) append(b []byte) []byte {
	b = appendBytes(b, l.Key)
	b = append(b, ',')
	b = appendBytes(b, l.Value)
	b = append(b, ',')
	return appendID(b, l.timer)
}

func unlabel(t *transaction, ls []label) error {
	return t.keyed("DELETE t FROM labels", []string{"name", "value", "timer"}, "", len(ls), func(b []byte, i int) []byte { return ls[i].append(b) })
}

func (g *group) writeVersions(t *transaction) error {
	return t.many("INSERT INTO versions (timer,version,`until`,deleted,definition) VALUES ", ",",
		" ON DUPLICATE KEY UPDATE `until`=VALUES(`until`),deleted=VALUES(deleted),definition=VALUES(definition)",
		len(g.versions), func(b []byte, i int) []byte {
			f := &g.versions[i]
			b = append(b, '(')
			b = appendInts(b, int64(f.timer.ID), int64(f.timer.Version), f.until, f.deleted)
			b = append(b, ',')
			b = appendBytes(b, engine.AppendTimer(nil, f.timer))
			return append(b, ')')
		})
}

func (g *group) writeOnce(t *transaction) error {
	var expired, puts []pair
	for _, k := range slices.SortedFunc(maps.Keys(g.once), comparePairs) {
		if o := g.once[k]; o.put {
			puts = append(puts, k)
			if o.former != 0 {
				expired = append(expired, k)
			}
		}
	}
	// The rows that were read, and no other: a key may have been used again since.
	err := t.keyed("DELETE t FROM once", []string{"app", "word", "expires"}, "", len(expired), func(b []byte, i int) []byte {
		return appendInt(append(appendPair(b, expired[i]), ','), g.once[expired[i]].former)
	})
	if err != nil {
		return err
	}
	return t.many("INSERT INTO once (app,word,timer,body,expires) VALUES ", ",", "", len(puts), func(b []byte, i int) []byte {
		o := g.once[puts[i]]
		b = append(b, '(')
		b = appendBytes(b, puts[i].app)
		b = append(b, ',')
		b = appendBytes(b, puts[i].key)
		b = append(b, ',')
		b = appendID(b, o.Timer)
		b = append(b, ',')
		b = appendBytes(b, o.Body[:])
		b = append(b, ',')
		b = appendInt(b, o.Expires)
		return append(b, ')')
	})
}

func appendPair(b []byte, p pair) []byte {
	return appendBytes(append(appendBytes(b, p.app), ','), p.key)
}

func comparePairs(a, b pair) int {
	return cmp.Or(cmp.Compare(a.app, b.app), cmp.Compare(a.key, b.key))
}

func (g *group) writeOwed(t *transaction) error {
	var pay []engine.Key
	var owe []engine.Owed
	for _, k := range slices.SortedFunc(maps.Keys(g.owed), compareKeys) {
		if o := g.owed[k]; o != nil {
			owe = append(owe, *o)
		} else {
			pay = append(pay, k)
		}
	}
	if err := payOwed(t, pay); err != nil {
		return err
	}
	return putOwed(t, owe)
}

func (g *group) writeTasks(t *transaction) error {
	rs := make([]engine.Record, 0, len(g.tasks))
	for k, task := range g.tasks {
		rs = append(rs, engine.Record{Key: k, Status: task.Status, Encoded: engine.AppendTask(nil, task)})
	}
	return g.s.putTasks(t, rs)
}

// writeFeed writes what changed; the row is the proof that the group was committed.
func (g *group) writeFeed(t *transaction) error {
	at, made := int64(0), make([]byte, 0, 12*len(g.feed))
	for _, p := range g.feed {
		version := uint32(0)
		if at = max(at, p.At); p.Timer != nil {
			version, at = p.Timer.Version, max(at, p.Timer.UpdatedAt)
		}
		made = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(made, uint64(p.ID)), version)
	}
	b := appendInt(append(t.buf[:0], "INSERT INTO changes (at,made) VALUES ("...), at)
	b = append(appendBytes(append(b, ','), made), ')')
	t.buf = b
	res, err := t.exec(string(b))
	if err == nil {
		t.proof.made = made
		t.proof.seq, err = res.LastInsertId()
	}
	return err
}

// noteRemoved notes the greatest id of the timers that the group removes.
func (g *group) noteRemoved(t *transaction) error {
	removed := engine.TimerID(0)
	for _, p := range g.feed {
		if p.Timer != nil {
			t.created = max(t.created, p.ID)
		} else {
			removed = max(removed, p.ID)
		}
	}
	return note(t, &g.s.newest.noted, g.slot, removed)
}

// count adds to how many timers there are by status.
func count(t *transaction, slot int64, by [3]int64) error {
	if by == [3]int64{} {
		return nil
	}
	b := append(t.buf[:0], "INSERT INTO counts (slot,status,n) VALUES "...)
	for status, n := range by {
		if n != 0 {
			b = append(b, '(')
			b = append(appendInts(b, slot, int64(status), n), "),"...)
		}
	}
	t.buf = append(b[:len(b)-1], " ON DUPLICATE KEY UPDATE n=n+VALUES(n)"...)
	return t.run(string(t.buf))
}

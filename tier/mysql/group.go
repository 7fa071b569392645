package mysql

import (
	"database/sql"
	"slices"

	"xtimer/engine"
	"xtimer/engine/policy"
)

// group is what one commit makes: the changes of ops, judged in order against
// what stands and what the group itself does before them.
//
// Its first try is blind, if it only creates: names and keys are nearly always
// free, and the unique keys of the tables find the rest. Then, and for all else,
// what stands is read first, and what is changed is locked.
type group struct {
	s     *Store
	ops   []*op
	out   [][]engine.Applied
	slot  int64
	blind bool

	timers   map[engine.TimerID]*standing // as they stand; read, or made by the group
	names    map[pair]engine.TimerID      // 0: free
	once     map[pair]*once
	last     map[engine.TimerID]*engine.Timer // the last version of one that is gone
	owed     map[engine.Key]*engine.Owed      // what is put; nil: paid
	tasks    map[engine.Key]*engine.Task
	versions []former
	feed     []*prepared
	clock    int64
}

type pair struct{ app, key string }

// standing is a timer as it stands in the group.
type standing struct {
	before *row // as it is stored; nil: it is not
	after  *row // as the group leaves it; nil: it is not
}

// row is a stored timer.
type row struct {
	timer   *engine.Timer
	encoded []byte
	bound   int64 // of the next due, when it recurs
}

// once is the stored row of an Idempotency-Key.
type once struct {
	policy.Use
	// former is what the row expires at that is stored, to be replaced; 0: there is none.
	former int64
	put    bool // by the group
}

// former is a version that was replaced, or deleted.
type former struct {
	timer          *engine.Timer
	until, deleted int64
}

func newGroup(s *Store, ops []*op, committer int64) *group {
	g := &group{s: s, ops: ops, slot: s.slot(committer), out: make([][]engine.Applied, len(ops)), blind: true}
	for _, o := range ops {
		for i := range o.changes {
			g.blind = g.blind && o.changes[i].Was == 0 && o.changes[i].Timer != nil
		}
	}
	return g
}

// commit judges the group and writes it.
func (g *group) commit(t *transaction) error {
	if err := g.s.own(t, g.slot); err != nil {
		return err
	}
	whole, err := g.judgeAll(t)
	if !whole && err == nil && g.blind { // why not is known to the tables
		g.blind = false
		_, err = g.judgeAll(t)
	}
	g.blind = false // the next try looks
	if err != nil {
		return err
	}
	if len(g.feed) == 0 {
		return errNothing
	}
	g.s.heard(g.clock)
	return g.write(t)
}

// judgeAll judges all changes from the beginning; whole reports that all are made.
func (g *group) judgeAll(t *transaction) (whole bool, err error) {
	n := 0
	for _, o := range g.ops {
		n += len(o.changes)
	}
	g.timers, g.names, g.once = make(map[engine.TimerID]*standing, n), make(map[pair]engine.TimerID, n), map[pair]*once{}
	g.last, g.owed, g.tasks = map[engine.TimerID]*engine.Timer{}, map[engine.Key]*engine.Owed{}, map[engine.Key]*engine.Task{}
	g.versions, g.feed, g.clock = nil, nil, g.s.clock.Load()
	if !g.blind {
		if err := g.load(t); err != nil {
			return false, err
		}
	}
	whole = true
	for i, o := range g.ops {
		g.out[i] = make([]engine.Applied, len(o.changes))
		for j := range o.changes {
			a := g.change(&o.changes[j])
			g.out[i][j] = a
			whole = whole && a.Err == nil && a.Existing == nil
		}
	}
	return whole, nil
}

// at is the timer as it stands in the group.
func (g *group) at(id engine.TimerID) *standing {
	st := g.timers[id]
	if st == nil {
		st = &standing{}
		g.timers[id] = st
	}
	return st
}

// load reads what the group's changes have to be held against.
func (g *group) load(t *transaction) error {
	var ids []engine.TimerID
	names, keys := map[string][]string{}, map[string][]string{}
	for _, o := range g.ops {
		for i := range o.changes {
			p := &o.changes[i]
			ids = append(ids, p.ID)
			if p.Timer != nil && p.Timer.Name != "" {
				names[p.Timer.App] = append(names[p.Timer.App], p.Timer.Name)
			}
			if p.Once != nil && p.Was == 0 {
				keys[p.Once.App] = append(keys[p.Once.App], p.Once.Key)
			}
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	// In the order of ids, as everybody locks them.
	if err := g.loadTimers(t, "id IN ", ids, " ORDER BY id FOR UPDATE"); err != nil {
		return err
	}
	for app, of := range names {
		head := string(appendBytes([]byte(selectRow+" WHERE nameless=0 AND app="), app)) + " AND name IN ("
		item := func(b []byte, i int) []byte { return appendBytes(b, of[i]) }
		if err := many(&t.buf, head, ",", ")", len(of), item, func(q string) error { return g.readTimers(t, q) }); err != nil {
			return err
		}
	}
	return g.loadOnce(t, keys)
}

const selectRow = "SELECT id,status,bound,definition FROM timers"

func (g *group) loadTimers(t *transaction, where string, ids []engine.TimerID, tail string) error {
	if len(ids) == 0 {
		return nil
	}
	return g.readTimers(t, selectRow+" WHERE "+where+string(appendIDs(nil, ids))+tail)
}

func (g *group) readTimers(t *transaction, query string) error {
	return t.scan(query, func(rows *sql.Rows) error {
		r, err := scanRow(rows)
		if err != nil {
			return err
		}
		st := g.at(r.timer.ID)
		if st.before != nil {
			return nil // locked before it was found by its name
		}
		st.before, st.after = r, r
		if r.timer.Name != "" {
			g.names[pair{r.timer.App, r.timer.Name}] = r.timer.ID
		}
		return nil
	})
}

// loadOnce reads the rows of Idempotency-Keys, with the timers they made.
func (g *group) loadOnce(t *transaction, keys map[string][]string) error {
	var made []engine.TimerID
	for app, of := range keys {
		head := string(appendBytes([]byte("SELECT word,timer,body,expires FROM once WHERE app="), app)) + " AND word IN ("
		item := func(b []byte, i int) []byte { return appendBytes(b, of[i]) }
		err := many(&t.buf, head, ",", ")", len(of), item, func(q string) error {
			return t.scan(q, func(rows *sql.Rows) error {
				var word, body sql.RawBytes
				var o once
				if err := rows.Scan(&word, &o.Timer, &body, &o.Expires); err != nil {
					return err
				}
				copy(o.Body[:], body)
				o.former = o.Expires
				g.once[pair{app, string(word)}] = &o
				made = append(made, o.Timer)
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	made = slices.DeleteFunc(made, func(id engine.TimerID) bool { return g.timers[id] != nil })
	if err := g.loadTimers(t, "id IN ", made, ""); err != nil {
		return err
	}
	made = slices.DeleteFunc(made, func(id engine.TimerID) bool { return g.timers[id] != nil })
	// Of each its last version alone: a timer may have thousands, of half a MiB each.
	for some := range slices.Chunk(made, 50) {
		b := t.buf[:0]
		for i, id := range some {
			if i > 0 {
				b = append(b, " UNION ALL "...)
			}
			b = appendID(append(b, "(SELECT timer,definition FROM versions WHERE timer="...), id)
			b = append(b, " ORDER BY version DESC LIMIT 1)"...)
		}
		t.buf = b
		err := t.scan(string(b), func(rows *sql.Rows) error {
			v, err := scanTimer(rows, "versions")
			if err == nil {
				g.last[v.ID] = v
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

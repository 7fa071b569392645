package local

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"xtimer/engine"
	"xtimer/engine/policy"
)

func compare(a, b []byte) int { return bytes.Compare(a, b) }

// write is one key to set, or to delete when val is nil. The bytes must stay as
// they are until the group is committed.
type write struct {
	key, val []byte
	place    int // among the writes of its kind; fill's
}

// span is the keys from ≤ k < to, to be deleted.
type span struct{ from, to []byte }

// state is what the committer knows without reading the database. Only the
// committer uses it after Open.
type state struct {
	stats  stats
	shards [engine.Shards]engine.Shard
	// newest is the greatest id that was ever stored, as a timer's or in a record or a
	// row: a greater one is free. noted is the greatest id written under newestKey.
	newest, noted engine.TimerID
	// clock is the latest instant heard of in what was written: the time of
	// changes that carry none. It never reads the wall clock.
	clock int64
	// watch is a time whose history a sweep may drop; touched: a record of it was written since the sweep began to look.
	watch   [2]int64
	touched bool
}

// touch notes that records are written.
func (st *state) touch(ws []write) {
	for i := 0; i < len(ws) && st.watch[1] != 0 && !st.touched; i++ {
		if k := ws[i].key; k[0] == kindRecord {
			due := readTime(k[1:])
			st.touched = due >= st.watch[0] && due < st.watch[1]
		}
	}
}

func (st *state) load(db *pebble.DB) error {
	*st = state{stats: stats{owed: map[int64]int64{}, ranges: map[int64]int64{}}}
	v, closer, err := db.Get(statsKey)
	b, err := owned(v, closer, err)
	if err != nil {
		return err
	}
	if b != nil {
		if err := st.stats.decode(b); err != nil {
			return damaged(statsKey, err)
		}
	}
	shards, err := readShards(db)
	if err != nil {
		return err
	}
	copy(st.shards[:], shards)
	for _, sh := range st.shards {
		st.clock = max(st.clock, sh.Watermark)
	}
	return st.loadNewest(db)
}

// loadNewest reads the greatest id that was ever stored. In a store written before
// newestKey existed, the versions and rows of deleted timers hold their ids.
func (st *state) loadNewest(db *pebble.DB) error {
	v, closer, err := db.Get(newestKey)
	b, err := owned(v, closer, err)
	if err != nil {
		return err
	}
	if b != nil {
		if st.noted, err = decodeName(newestKey, b); err != nil {
			return err
		}
	}
	st.newest = st.noted
	for _, kind := range []byte{kindTimer, kindVersion, kindOwed} {
		err := scanBack(db, []byte{kind}, []byte{kind + 1}, func(k, _ []byte) (bool, error) {
			if len(k) < 9 {
				return false, damaged(k, errKey)
			}
			st.newest = max(st.newest, readID(k[1:]))
			return false, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// note records an id that no stored timer holds, so that it is never issued again.
// A stored timer holds its own id: a create costs nothing.
func (g *group) note(id engine.TimerID) {
	g.st.newest = max(g.st.newest, id)
	if id > g.st.noted {
		g.st.noted = id
		g.put(newestKey, appendID([]byte{valueVersion}, id))
	}
}

// group is one commit in the making: its writes by kind, and the overlay, which is
// what a later op of the group must see of an earlier one. Only the committer uses
// it.
type group struct {
	s      *Store
	st     *state
	writes [kinds][]write
	ranges []span
	buf    []byte // holds keys and values until the commit
	probe  []byte // a key to look up
	its    [kinds]*pebble.Iterator

	timers map[engine.TimerID]*engine.Timer // nil: deleted
	names  map[string]engine.TimerID        // by nameKey; 0: free
	once   map[string]*policy.Use           // by onceKey
	owed   map[engine.Key]*engine.Owed      // nil: paid
	owing  map[engine.TimerID]int           // how many of those are not paid
	bounds map[engine.TimerID]*bound        // nil: none
	ended  map[engine.TimerID]bool          // archived, their rows as they were
	ranks  map[engine.Key]engine.Rank       // of the records that ranks matter for
	// objects are the stored forms by key; nil: deleted
	objects map[engine.ObjectKey][]byte
}

func newGroup(s *Store) *group {
	return &group{
		s: s, st: &s.state,
		timers: map[engine.TimerID]*engine.Timer{},
		names:  map[string]engine.TimerID{},
		once:   map[string]*policy.Use{},
		owed:   map[engine.Key]*engine.Owed{},
		owing:  map[engine.TimerID]int{},
		bounds: map[engine.TimerID]*bound{},
		ended:  map[engine.TimerID]bool{},
		ranks:  map[engine.Key]engine.Rank{},

		objects: map[engine.ObjectKey][]byte{},
	}
}

func (g *group) reset() {
	for i := range g.writes {
		clear(g.writes[i])
		g.writes[i] = g.writes[i][:0]
	}
	g.ranges = g.ranges[:0]
	if g.buf = g.buf[:0]; cap(g.buf) > 4<<20 {
		g.buf = nil
	}
	clear(g.timers)
	clear(g.names)
	clear(g.once)
	clear(g.owed)
	clear(g.owing)
	clear(g.bounds)
	clear(g.ended)
	clear(g.ranks)
	clear(g.objects)
}

func (g *group) empty() bool {
	for i := range g.writes {
		if len(g.writes[i]) > 0 {
			return false
		}
	}
	return len(g.ranges) == 0
}

// put writes a key; both slices must stay as they are until the commit.
func (g *group) put(key, val []byte) {
	g.writes[key[0]] = append(g.writes[key[0]], write{key: key, val: val})
}

func (g *group) putAll(ws []write) {
	if len(ws) > 0 { // most are of one kind or two: growing by doubling was a fiftieth of a fire
		kind := ws[0].key[0]
		g.writes[kind] = slices.Grow(g.writes[kind], len(ws))
	}
	for _, w := range ws {
		g.put(w.key, w.val)
	}
}

func (g *group) delete(key []byte) { g.put(key, nil) }

// get reads the database, without the overlay; nil for none. One iterator a
// kind serves the whole group: that costs a quarter of a Get for each key.
func (g *group) get(key []byte) ([]byte, error) {
	v, err := g.look(key)
	if v == nil || err != nil {
		return nil, err
	}
	return append(make([]byte, 0, len(v)), v...), nil
}

// look is get; the value is valid until the next look.
func (g *group) look(key []byte) ([]byte, error) {
	it, err := g.iter(key[0])
	if err != nil {
		return nil, err
	}
	if !it.SeekPrefixGE(key) {
		if err := it.Error(); err != nil {
			return nil, fmt.Errorf("cannot read the store: %w", err)
		}
		return nil, nil
	}
	return it.ValueAndErr()
}

// iter is the group's iterator over a kind.
func (g *group) iter(kind byte) (*pebble.Iterator, error) {
	if it := g.its[kind]; it != nil {
		return it, nil
	}
	it, err := g.s.db.NewIter(&pebble.IterOptions{
		LowerBound: []byte{kind}, UpperBound: []byte{kind + 1},
		UseL6Filters: kind != kindTimer, // most others are looked up in vain
	})
	if err == nil {
		g.its[kind] = it
	}
	return it, err
}

// judged closes the iterators, which would keep alive what the commit replaces.
func (g *group) judged() {
	for kind, it := range g.its {
		if it != nil {
			_ = it.Close() // look has reported its error
			g.its[kind] = nil
		}
	}
}

// timer returns the definition as it stands, or nil.
func (g *group) timer(id engine.TimerID) (*engine.Timer, error) {
	if t, ok := g.timers[id]; ok {
		return t, nil
	}
	if id > g.st.newest {
		return nil, nil
	}
	g.probe = timerKey(g.probe[:0], id)
	b, err := g.get(g.probe)
	if b == nil || err != nil {
		return nil, err
	}
	t, err := engine.DecodeTimer(b)
	if err != nil {
		return nil, damaged(g.probe, err)
	}
	return g.asEnded(t)
}

// named returns the id of the timer that has the name, or 0.
func (g *group) named(app, name string) (engine.TimerID, error) {
	if name == "" {
		return 0, nil
	}
	g.probe = nameKey(g.probe[:0], app, name, 0)
	if id, ok := g.names[string(g.probe)]; ok {
		return id, nil
	}
	v, err := g.look(g.probe)
	if v == nil || err != nil {
		return 0, err
	}
	return decodeName(g.probe, v)
}

func decodeName(k, v []byte) (engine.TimerID, error) {
	if len(v) != 9 || v[0] != valueVersion {
		return 0, damaged(k, errShort)
	}
	return readID(v[1:]), nil
}

// encodeUse is the stored row of an Idempotency-Key.
func encodeUse(b []byte, u *policy.Use) []byte {
	b = append(b, valueVersion)
	b = appendID(b, u.Timer)
	b = binary.BigEndian.AppendUint64(b, uint64(u.Expires))
	return append(b, u.Body[:]...)
}

func decodeUse(b []byte) (*policy.Use, error) {
	if len(b) != 1+8+8+32 || b[0] != valueVersion {
		return nil, errShort
	}
	u := &policy.Use{Timer: readID(b[1:]), Expires: int64(binary.BigEndian.Uint64(b[9:]))}
	copy(u.Body[:], b[17:])
	return u, nil
}

// Used returns the last create made with an Idempotency-Key, or nil.
func (g *group) Used(app, key string) (*policy.Use, error) {
	g.probe = onceKey(g.probe[:0], app, key)
	if u, ok := g.once[string(g.probe)]; ok {
		return u, nil
	}
	b, err := g.get(g.probe)
	if b == nil || err != nil {
		return nil, err
	}
	u, err := decodeUse(b)
	if err != nil {
		return nil, damaged(g.probe, err)
	}
	return u, nil
}

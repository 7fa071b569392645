package local

import (
	"errors"
	"runtime"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

var (
	errClosed = errors.New("the store is closed")
	errShort  = errors.New("the value is cut short")
)

// views hands readers the last durable state. Pebble shows a commit before its
// sync is over; a snapshot made between two commits does not.
type views struct {
	mu   sync.Mutex
	db   *pebble.DB
	cur  *view
	live int        // views not closed; guarded by mu
	none *sync.Cond // live became 0
}

// view is one durable state; refs, guarded by views.mu, counts its readers, and
// one for being the current.
type view struct {
	*pebble.Snapshot
	highest int64  // the highest watermark in it
	seq     uint64 // the number of the last commit in it
	refs    int
}

func newView(db *pebble.DB, st *state) *view {
	return &view{Snapshot: db.NewSnapshot(), highest: st.highest(), seq: st.stats.seq, refs: 1}
}

func (v *views) open(db *pebble.DB, st *state) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.db, v.none = db, sync.NewCond(&v.mu)
	v.cur, v.live = newView(db, st), 1
}

// renew makes the present state the current view. Only the committer calls it,
// between two commits.
func (v *views) renew(st *state) {
	next := newView(v.db, st)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.unref(v.cur)
	v.cur = next
	v.live++
}

// acquire returns the current view; the reader must release it.
func (v *views) acquire() (*view, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cur == nil {
		return nil, errClosed
	}
	v.cur.refs++
	return v.cur, nil
}

func (v *views) release(w *view) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.unref(w)
}

func (v *views) unref(w *view) {
	if w.refs--; w.refs > 0 {
		return
	}
	_ = w.Close() // a snapshot's Close has no error to report
	if v.live--; v.live == 0 {
		v.none.Broadcast()
	}
}

// close refuses new readers and waits for those that read.
func (v *views) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.unref(v.cur)
	v.cur = nil
	for v.live > 0 {
		v.none.Wait()
	}
}

// get reads one key; the value is a copy of the reader's own, nil for none.
func (w *view) get(key []byte) ([]byte, error) {
	v, closer, err := w.Get(key)
	return owned(v, closer, err)
}

// scan walks the keys in [from, to) of a database or a snapshot until f is
// false or fails. What f gets is only valid in f.
func scan(r pebble.Reader, from, to []byte, f func(k, v []byte) (more bool, err error)) error {
	return walk(r, from, to, (*pebble.Iterator).First, (*pebble.Iterator).Next, f)
}

// scanBack is scan from the last key to the first.
func scanBack(r pebble.Reader, from, to []byte, f func(k, v []byte) (more bool, err error)) error {
	return walk(r, from, to, (*pebble.Iterator).Last, (*pebble.Iterator).Prev, f)
}

// yieldEvery is after how many keys a reader or a writer of many lets others go
// first: calls that are due must not wait for a list that somebody looks at.
const yieldEvery = 64

func walk(r pebble.Reader, from, to []byte, first, next func(*pebble.Iterator) bool, f func(k, v []byte) (bool, error)) error {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	more := true
	for n, ok := 1, first(it); ok && more && err == nil; n, ok = n+1, next(it) {
		if n%yieldEvery == 0 {
			runtime.Gosched()
		}
		var v []byte
		if v, err = it.ValueAndErr(); err == nil {
			more, err = f(it.Key(), v)
		}
	}
	return errors.Join(err, it.Close())
}

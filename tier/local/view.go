package local

import (
	"errors"
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

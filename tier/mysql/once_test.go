package mysql

import (
	"bytes"
	"database/sql"
	"fmt"
	"testing"

	"xtimer/engine"
)

// TestExpiredKeyIsUsedByTwo: of two groups that both found an Idempotency-Key expired one
// takes it, and the other hears of that.
func TestExpiredKeyIsUsedByTwo(t *testing.T) {
	s := opened(t)
	with := func(id engine.TimerID, expires int64) *engine.Change {
		c := create(shot(id, fmt.Sprint("n", id)))
		c.Once = &engine.Once{App: "billing", Key: "k", Body: [32]byte{1}, Expires: expires}
		return c
	}
	mustApply(t, s, with(1, benchNow)) // it expires when it is made
	var groups [2]*group
	var ts [2]*transaction
	for i := range groups { // both look before either writes
		g := newGroup(s, []*op{prepare([]*engine.Change{with(engine.TimerID(2+i), benchNow+86_400_000)})}, int64(i+1))
		g.blind = false
		tx := holder(t, s)
		groups[i], ts[i] = g, &transaction{tx: tx, ctx: t.Context()}
		if whole, err := g.judgeAll(ts[i]); !whole || err != nil {
			t.Fatal(whole, err)
		}
	}
	if err := groups[0].write(ts[0]); err != nil {
		t.Fatal(err)
	}
	if err := ts[0].tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := groups[1].write(ts[1]); number(err) != errDuplicate {
		t.Fatalf("the key of the first was taken away: %v", err)
	}
}

// TestRepeatOfAChangedTimer: the answer to a repeated create of a timer that was changed
// often, and deleted, costs its last version, not all of them.
func TestRepeatOfAChangedTimer(t *testing.T) {
	s := open(t, unhurried(t))
	const large = 100 << 10
	x := shot(1, "n")
	x.Callback.HasBody, x.Callback.Body = true, bytes.Repeat([]byte{'x'}, large)
	c := create(x)
	c.Once = &engine.Once{App: "billing", Key: "k", Body: [32]byte{1}, Expires: benchNow + dayMs}
	mustApply(t, s, c)
	for x.Version < 40 {
		next := *x
		next.Version++
		mustApply(t, s, &engine.Change{Timer: &next, ID: 1, Was: x.Version})
		x = &next
	}
	mustApply(t, s, &engine.Change{ID: 1, Was: x.Version})

	s.db.SetMaxOpenConns(1) // what a session reads is counted by session
	sent := func() (n int) {
		t.Helper()
		err := s.scan(t.Context(), "SHOW SESSION STATUS LIKE 'Bytes_sent'", func(rows *sql.Rows) error {
			return rows.Scan(new(string), &n)
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	again := create(shot(2, "n"))
	again.Once = c.Once
	before := sent()
	a, err := s.Apply(t.Context(), again)
	if err != nil || !a.Replayed || a.Existing == nil || a.Existing.Version != 40 {
		t.Fatalf("%+v, %v", a, err)
	}
	if n := sent() - before; n > 3*large {
		t.Errorf("%d bytes were read for one version of %d", n, large)
	}
}

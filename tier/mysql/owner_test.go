package mysql

import (
	"errors"
	"testing"
	"time"

	"xtimer/engine"
)

// heirs are stores over one database, each of which waits so long for a former owner.
func heirs(t *testing.T, waits time.Duration, folders ...string) (ss []*Store) {
	t.Helper()
	first := fresh(t)
	for _, folder := range folders {
		s := New(first.cfg)
		s.cfg.Folder, s.heirWaits, s.patience, s.answer = folder, waits, time.Minute, time.Minute
		ss = append(ss, open(t, s))
	}
	return ss
}

// taking begins a Take, and returns when the shards are claimed.
func taking(t *testing.T, s *Store) (end chan error) {
	t.Helper()
	end = make(chan error, 1)
	go func() {
		_, _, err := s.Take(t.Context(), "n")
		end <- err
	}()
	patient(t, "the shards are claimed", func() bool {
		var o owner
		err := s.scan(t.Context(), selectOwner, readOwner(&o))
		return err == nil && (o.heir == s.process || o.process == s.process) || len(end) > 0
	})
	return end
}

func mustTake(t *testing.T, s *Store) {
	t.Helper()
	if _, _, err := s.Take(t.Context(), "n"); err != nil {
		t.Fatal(err)
	}
}

func owns(t *testing.T, s *Store, want error) {
	t.Helper()
	if err := s.Owns(t.Context()); !errors.Is(err, want) {
		t.Errorf("whether it owns the shards: %v, want %v", err, want)
	}
}

const never = time.Minute // longer than a test; a store looks 60 times in it

// TestHandOver: the owner hears of a claim, stores what it has left, and closes; then the
// heir takes the shards.
func TestHandOver(t *testing.T) {
	ss := heirs(t, never, "one", "two")
	a, b := ss[0], ss[1]
	mustTake(t, a) // of a new database, at once
	owns(t, a, nil)
	owns(t, b, engine.ErrFenced)
	end := taking(t, b)
	owns(t, a, engine.ErrFenced)
	if err := a.Settle(t.Context(), &engine.Settlement{Owner: "n", Owe: []engine.Owed{{Key: engine.Key{Timer: 1, Due: benchNow}}}}); err != nil {
		t.Errorf("what it settles after the claim: %v", err)
	}
	if len(end) > 0 {
		t.Fatal("the heir did not wait")
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-end; err != nil {
		t.Fatal(err)
	}
	owns(t, b, nil)
}

// TestHeirWaits: an owner that does not close is taken over when the time is over, and no
// earlier; so is one of a former program.
func TestHeirWaits(t *testing.T) {
	const waits = time.Second
	for _, former := range []bool{false, true} {
		ss := heirs(t, waits, "one", "two")
		a, b := ss[0], ss[1]
		mustTake(t, a)
		if former {
			if _, err := a.db.Exec("UPDATE owner SET process='',folder=''"); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		mustTake(t, b)
		if took := time.Since(began); took < waits {
			t.Errorf("taken after %v", took)
		}
		owns(t, a, engine.ErrFenced)
		owns(t, b, nil)
		if err := a.Settle(t.Context(), &engine.Settlement{Owner: "n", Owe: []engine.Owed{{Key: engine.Key{Timer: 1, Due: benchNow}}}}); !errors.Is(err, engine.ErrFenced) {
			t.Errorf("what the former one settles: %v", err)
		}
	}
}

// TestRestartDoesNotWait: a process that has the data directory of the owner knows that
// the owner is over, however it ended; and one that takes again is itself.
func TestRestartDoesNotWait(t *testing.T) {
	ss := heirs(t, never, "one", "one")
	for _, s := range []*Store{ss[0], ss[0], ss[1]} {
		mustTake(t, s)
		owns(t, s, nil)
	}
	owns(t, ss[0], engine.ErrFenced)
}

// TestTwoHeirs: of those that wait for one owner the last gets the shards, and none if
// the owner is started again meanwhile.
func TestTwoHeirs(t *testing.T) {
	ss := heirs(t, never, "one", "two", "three", "one")
	a, b, c, again := ss[0], ss[1], ss[2], ss[3]
	mustTake(t, a)
	first, second := taking(t, b), taking(t, c)
	if err := <-first; !errors.Is(err, engine.ErrFenced) {
		t.Errorf("the first: %v", err)
	}
	mustTake(t, again)
	if err := <-second; !errors.Is(err, engine.ErrFenced) {
		t.Errorf("the second: %v", err)
	}
	owns(t, again, nil)
}

// TestOwnsWhileBusy: the question waits for no connection of those that do the work.
func TestOwnsWhileBusy(t *testing.T) {
	s := heirs(t, never, "one")[0]
	mustTake(t, s)
	for range s.db.Stats().MaxOpenConnections {
		conn, err := s.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	owns(t, s, nil)
}

package mysql

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/tier/servertest"
)

// TestAnswerInTime: while the server hangs, who makes, changes or looks for timers is
// told within five seconds, whether a committer has the change or it waits for
// one; and once the server goes on all of it is known: what was made stays.
func TestAnswerInTime(t *testing.T) {
	t.Parallel()
	server := servertest.MariaDB(t)
	s := open(t, New(Config{DSN: server.DSN("x")})) // with the times that it has in use
	mustApply(t, s, create(shot(1, "a")))

	server.Pause()
	const waves, each = 3, 4
	made := map[engine.TimerID]*engine.Change{}
	var wg sync.WaitGroup
	asks := func(what string, f func() error) {
		wg.Go(func() {
			began := time.Now()
			err := f()
			// 5 s are promised, on a machine that has the time; all others wait for ten.
			if took := time.Since(began); took > 9*time.Second || !errors.Is(err, engine.ErrUnavailable) {
				t.Errorf("%s: %v after %v", what, err, took)
			}
		})
	}
	asks("a lookup", func() error { _, err := s.TimerByName(t.Context(), "billing", "a"); return err })
	asks("a delete", func() error {
		_, err := s.Apply(t.Context(), &engine.Change{ID: 1, Was: 1, At: benchNow})
		return err
	})
	for wave := range waves { // the committers take the first
		for i := range each {
			id := engine.TimerID(100 + wave*each + i)
			c := create(shot(id, fmt.Sprint("n", id)))
			made[id] = c
			asks(fmt.Sprint("create ", id), func() error { _, err := s.Apply(t.Context(), c); return err })
		}
		time.Sleep(time.Second)
	}
	many := make([]*engine.Change, 4*statementRows) // several statements, and yet one answer
	for i := range many {
		id := engine.TimerID(1000 + i)
		many[i] = create(shot(id, fmt.Sprint("n", id)))
		made[id] = many[i]
	}
	asks("a batch", func() error {
		as := s.ApplyAll(t.Context(), many)
		for _, a := range as {
			if !errors.Is(a.Err, engine.ErrUnavailable) {
				return a.Err
			}
		}
		return as[len(as)-1].Err
	})
	wg.Wait()

	server.Resume()
	patient(t, "a settle", func() bool { return s.Settle(t.Context(), &engine.Settlement{Owner: "n"}) == nil })
	there := map[engine.TimerID]bool{}
	for id := range made {
		_, err := s.Timer(t.Context(), id)
		if there[id] = err == nil; err != nil && !errors.Is(err, engine.ErrNotFound) {
			t.Fatal(err)
		}
	}
	for id, c := range made { // again: nothing is there twice, nothing came after the settle
		_, err := s.Apply(t.Context(), c)
		if there[id] != errors.Is(err, engine.ErrConflict) || err != nil && !errors.Is(err, engine.ErrConflict) {
			t.Errorf("timer %d was there after the settle: %v; made again: %v", id, there[id], err)
		}
	}
}

// TestLeftToItsCommitter: a change whose caller waits no more may be made yet, so a
// settle waits until its committer is done with it; then it is known for good.
func TestLeftToItsCommitter(t *testing.T) {
	t.Parallel()
	s := opened(t)
	f := &faulty{}
	f.under(t, s)
	s.answer = 100 * time.Millisecond
	begun, goes := make(chan struct{}, 1), make(chan struct{})
	end := sync.OnceFunc(func() { close(goes) })
	t.Cleanup(end)
	f.failOnce(func(commit func() error, _ func()) error { begun <- struct{}{}; <-goes; return commit() })
	for len(begun) == 0 { // on a busy machine it may not come as far as the commit in time
		if _, err := s.Apply(t.Context(), create(shot(1, "a"))); !errors.Is(err, engine.ErrUnavailable) {
			t.Fatalf("the commit takes for ever: %v", err)
		}
	}
	settled := make(chan error, 1)
	go func() { settled <- s.Settle(t.Context(), &engine.Settlement{Owner: "n"}) }()
	select {
	case err := <-settled:
		t.Fatalf("settled over a change that its committer still has: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	end()
	if err := <-settled; err != nil {
		t.Fatal(err)
	}
	s.answer = time.Minute
	if _, err := s.Timer(t.Context(), 1); err != nil {
		t.Fatalf("the commit was made: %v", err)
	}
	if n := len(s.doubts.ops); n != 0 {
		t.Errorf("%d changes are kept that are done", n)
	}
}

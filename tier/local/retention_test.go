package local

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
)

// firstDay begins the history of these tests.
const firstDay = benchNow / day * day

// withRange is a store with two recurring timers: the first owes a range from the first hour on.
func withRange(t *testing.T) *Store {
	t.Helper()
	s := small(vfs.NewMem())
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for id := engine.TimerID(1); id <= 2; id++ {
		x := &engine.Timer{Definition: engine.NewDefinition(), ID: id, Version: 1, Generation: 1, Status: engine.Enabled}
		x.App, x.Name, x.ValidFrom, x.UpdatedAt, x.CreatedAt = "a", fmt.Sprint("r", id), firstDay, firstDay, firstDay
		x.Schedule.Cron = "* * * * *"
		if _, err := s.Apply(t.Context(), &engine.Change{Timer: x, ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, s, &engine.Settlement{Owner: "n", Owe: []engine.Owed{
		{Key: engine.Key{Timer: 1, Due: firstDay + hour}, To: engine.Endless, Generation: 1, NotBefore: firstDay},
	}})
	return s
}

func settle(t *testing.T, s *Store, st *engine.Settlement, ks ...engine.Key) {
	t.Helper()
	for _, k := range ks {
		x := &engine.Task{Key: k, Status: engine.Succeeded}
		st.Tasks = append(st.Tasks, engine.Record{Key: k, Status: x.Status, Encoded: engine.AppendTask(nil, x)})
	}
	if err := s.Settle(t.Context(), st); err != nil {
		t.Fatal(err)
	}
}

// A row that cannot be read, to which a range leads, keeps no other day of history.
func TestRetentionBesideDamage(t *testing.T) {
	inRange := engine.Key{Timer: 1, Due: firstDay + 2*hour}
	rowOfRange := owedKey(nil, engine.Key{Timer: 1, Due: firstDay + hour})
	for name, key := range map[string][]byte{"a timer": timerKey(nil, 1), "a record": recordKey(nil, inRange), "the range": rowOfRange, "none": nil} {
		t.Run(name, func(t *testing.T) {
			s := withRange(t)
			ks := []engine.Key{inRange}
			for d := range int64(10) {
				ks = append(ks, engine.Key{Timer: 2, Due: firstDay + d*day + hour})
			}
			settle(t, s, &engine.Settlement{Owner: "n"}, ks...)
			if key != nil {
				if err := s.db.Set(key, []byte{1, 2}, pebble.Sync); err != nil {
					t.Fatal(err)
				}
			}
			for range 20 {
				if _, err := s.Sweep(t.Context(), firstDay+20*day, 0, firstDay+9*day); err != nil && !errors.As(err, new(*engine.Damage)) {
					t.Fatal(err)
				}
			}
			ts, _, err := s.Tasks(t.Context(), engine.TaskFilter{From: firstDay + day}, engine.Key{}, 100)
			if err != nil || len(ts) != 1 {
				t.Errorf("%d records of the days after the first are left, want 1 (%v)", len(ts), err)
			}
			if _, err := s.Task(t.Context(), engine.Key{Timer: 2, Due: firstDay + hour}); err != nil {
				t.Errorf("the day of a record in the range has gone: %v", err)
			}
		})
	}
}

// A record of a due of a range, which is stored while a sweep looks whether the day may go, stays.
func TestRecordWhileASweepLooks(t *testing.T) {
	s := withRange(t)
	settle(t, s, &engine.Settlement{Owner: "n"}, engine.Key{Timer: 2, Due: firstDay + hour})
	if held, err := s.holds(t.Context(), firstDay, firstDay+day); held || err != nil {
		t.Fatalf("the day is held: %v, %v", held, err)
	}
	k := engine.Key{Timer: 1, Due: firstDay + 2*hour}
	settle(t, s, &engine.Settlement{Owner: "n"}, k)
	if dropped, err := s.dropRange(t.Context(), firstDay, firstDay+day, false); dropped || err != nil {
		t.Errorf("the day goes: %v, %v", dropped, err)
	}
	for range 3 {
		if _, err := s.Sweep(t.Context(), firstDay+9*day, 0, firstDay+3*day); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Task(t.Context(), k); err != nil {
		t.Error(err)
	}
}

// together has changes made in one commit, in order.
func together(t *testing.T, s *Store, fs ...func() error) {
	t.Helper()
	hold, begun := make(chan struct{}), make(chan struct{})
	go func() { _ = s.do(t.Context(), 1, func(*group) error { close(begun); <-hold; return nil }) }()
	<-begun
	done := make(chan error, len(fs))
	for i, f := range fs {
		go func() { done <- f() }()
		for queued := 0; queued <= i; time.Sleep(time.Millisecond) {
			s.queue.mu.Lock()
			queued = len(s.queue.ops)
			s.queue.mu.Unlock()
		}
	}
	close(hold)
	for range fs {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// Changes of one bucket that share a commit see each other.
func TestBucketsInOneCommit(t *testing.T) {
	put := func(s *Store, fence uint64, until int64, body string) func() error {
		return func() error {
			return s.PutBuckets(t.Context(), []engine.Bucket{{Name: "b", Fence: fence, Until: until, Body: []byte(body)}})
		}
	}
	for want, changes := range map[string]func(s *Store) []func() error{
		"of fence 5": func(s *Store) []func() error {
			return []func() error{put(s, 5, benchNow+day, "of fence 5"), put(s, 3, benchNow+day, "of fence 3")}
		},
		"new": func(s *Store) []func() error {
			return []func() error{put(s, 1, benchNow+day, "new"), func() error { _, err := s.forgetBuckets(t.Context(), benchNow+1); return err }}
		},
	} {
		s := withRange(t)
		if err := put(s, 1, benchNow, "old")(); err != nil {
			t.Fatal(err)
		}
		together(t, s, changes(s)...)
		if bs, err := s.Buckets(t.Context(), []string{"b"}); err != nil || string(bs[0]) != want {
			t.Errorf("the bucket is %q, want %q, %v", bs, want, err)
		}
	}
}

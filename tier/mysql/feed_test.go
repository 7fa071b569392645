package mysql

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"xtimer/engine"
)

// TestFeed: each commit leaves one row, which names all that it made.
func TestFeed(t *testing.T) {
	s := opened(t)
	a, b := shot(1, "a"), shot(2, "b")
	for _, x := range s.ApplyAll(t.Context(), []*engine.Change{create(a), create(b)}) {
		if x.Err != nil {
			t.Fatal(x.Err)
		}
	}
	next := shot(1, "a")
	next.Version, next.UpdatedAt = 2, benchNow+5
	mustApply(t, s, &engine.Change{Timer: next, ID: 1, Was: 1, At: benchNow + 5})
	mustApply(t, s, &engine.Change{ID: 2, Was: 1, At: benchNow + 9})

	rows, err := s.db.Query("SELECT at,made FROM changes ORDER BY seq")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var at int64
		var made []byte
		if err := rows.Scan(&at, &made); err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprint(at-benchNow, ":")
		for ; len(made) >= 12; made = made[12:] {
			line += fmt.Sprintf(" %d@%d", binary.BigEndian.Uint64(made), binary.BigEndian.Uint32(made[8:]))
		}
		got = append(got, line)
		if len(made) > 0 {
			t.Errorf("%d bytes too many", len(made))
		}
	}
	if want := []string{"0: 1@1 2@1", "5: 1@2", "9: 2@0"}; !slices.Equal(got, want) {
		t.Errorf("the feed says %q, want %q", got, want)
	}
}

// TestFeedOutOfOrder: a commit that is slow shows its lower number after a higher
// one. It is found by who reads the last seconds again, and is forgotten like the others.
func TestFeedOutOfOrder(t *testing.T) {
	s := opened(t)
	slow := holder(t, s)
	if _, err := slow.Exec("INSERT INTO changes (at,made) VALUES (?,'')", benchNow); err != nil {
		t.Fatal(err)
	}
	mustApply(t, s, create(shot(1, "a")))
	mustApply(t, s, create(shot(2, "b")))
	since := func(seq, at int64) (n int) {
		t.Helper()
		if err := s.db.QueryRow("SELECT COUNT(*) FROM changes WHERE seq>? OR at>=?", seq, at).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	sweep := func(now int64) {
		t.Helper()
		if _, err := s.forgetFeed(t.Context(), now-feedKept); err != nil {
			t.Fatal(err)
		}
	}
	var last int64
	if err := s.db.QueryRow("SELECT MAX(seq) FROM changes").Scan(&last); err != nil || since(0, 0) != 2 {
		t.Fatalf("%d are seen before the slow one, %v", since(0, 0), err)
	}
	sweep(benchNow + feedKept + 1) // others are old by now
	if err := slow.Commit(); err != nil {
		t.Fatal(err)
	}
	if byNumber, again := since(last, 1<<62), since(last, benchNow); byNumber != 0 || again != 1 {
		t.Errorf("after the slow one: %d by the number, %d in the last seconds, want 0 and 1", byNumber, again)
	}
	sweep(benchNow + feedKept + 1)
	if n := since(0, 0); n != 0 {
		t.Errorf("%d are kept for ever", n)
	}
}

// TestFeedOfAWrongClock: what was changed while the clock was ahead keeps nothing that was
// changed after it in the feed for longer than an hour.
func TestFeedOfAWrongClock(t *testing.T) {
	s := opened(t)
	const year = 365 * 24 * 3_600_000
	change := func(id engine.TimerID, at int64) {
		t.Helper()
		x := shot(id, fmt.Sprint("n", id))
		x.CreatedAt, x.UpdatedAt = at, at
		mustApply(t, s, create(x))
	}
	sweep := func(now int64) (n int) {
		t.Helper()
		for more := true; more; {
			var err error
			if more, err = s.forgetFeed(t.Context(), now-feedKept); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.db.QueryRow("SELECT COUNT(*) FROM changes").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	change(1, benchNow)
	change(2, benchNow+year) // the clock is ahead
	change(3, benchNow+year+1)
	change(4, benchNow+1) // and was set back
	change(5, benchNow+feedKept)
	if n := sweep(benchNow + 2); n != 5 {
		t.Errorf("%d are left of those of the last hour", n)
	}
	if n := sweep(benchNow + feedKept + 1); n != 4 {
		t.Errorf("%d are left before it is known which are old", n)
	}
	if n := sweep(benchNow + feedKept + 2); n != 1 {
		t.Errorf("%d are left an hour later, want the last", n)
	}
}

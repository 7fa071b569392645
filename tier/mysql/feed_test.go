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

package object

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"xtimer/engine"
	"xtimer/tier/memory"
)

// deleting is a store that counts the transactions which delete, and can fail.
type deleting struct {
	*memory.Cold
	n   int
	err error
}

func (d *deleting) DeleteObjects(ctx context.Context, of ...*engine.Object) error {
	if d.n++; d.err != nil {
		return d.err
	}
	return d.Cold.DeleteObjects(ctx, of...)
}

// Many objects are deleted hundreds at a time, also those of which another version stands in the
// store than in the set, and those that are gone.
func TestDeleteAll(t *testing.T) {
	store := &deleting{Cold: memory.NewCold()}
	var heard int
	s := opened(t, store, Kind{Name: "incident", Uncounted: true, Changed: func(engine.ObjectKey) { heard++ }})
	var items []Item
	var keys []engine.ObjectKey
	for i := range 1000 {
		k := engine.ObjectKey{Kind: "incident", App: "app", Name: fmt.Sprint(i)}
		keys, items = append(keys, k), append(items, Item{Key: k, Body: []byte("1")})
	}
	if err := errors.Join(s.PutAll(t.Context(), items)...); err != nil {
		t.Fatal(err)
	}
	if n := s.Count("incident"); n != 1000 || s.Count("flow") != 0 {
		t.Errorf("%d objects", n)
	}
	heard = 0
	store.err = engine.ErrUnavailable
	if err := s.DeleteAll(t.Context(), keys); !errors.Is(err, engine.ErrUnavailable) || s.Count("incident") != 1000 || store.n != 1 {
		t.Error(err, store.n)
	}
	store.err = nil
	for range 2 {
		if err := s.DeleteAll(t.Context(), keys[:800]); err != nil || s.Count("incident") != 200 || heard != 800 || store.n != 1+4 {
			t.Errorf("%v; %d left, %d changes are told, in %d transactions", err, s.Count("incident"), heard, store.n-1)
		}
	}
	other := opened(t, store.Cold)
	if _, _, err := other.Put(t.Context(), keys[900], []byte("2"), nil); err != nil {
		t.Fatal(err)
	}
	if err := other.Delete(t.Context(), keys[901], nil); err != nil {
		t.Fatal(err)
	}
	if err := s.DeleteAll(t.Context(), keys); err != nil || s.Count("incident") != 0 {
		t.Error(err, s.Count("incident"))
	}
	if again := opened(t, store.Cold); again.Count("incident") != 0 {
		t.Error("a start reads objects that were deleted")
	}
}

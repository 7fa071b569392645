package object

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
	"xtimer/tier/memory"
)

func key(name string) engine.ObjectKey { return engine.ObjectKey{Kind: "flow", App: "app", Name: name} }

// faulty is a store that makes a write and tells that it does not know.
type faulty struct {
	*memory.Cold
	lose error
}

func (f *faulty) PutObjects(ctx context.Context, puts ...engine.ObjectPut) error {
	err := f.Cold.PutObjects(ctx, puts...)
	if f.lose != nil {
		return f.lose
	}
	return err
}

func opened(t *testing.T, store Store, kinds ...Kind) *Set {
	t.Helper()
	s := New(store, time.Now, slog.New(slog.DiscardHandler))
	for _, k := range kinds {
		s.Register(k)
	}
	if _, _, err := s.Put(t.Context(), key("a"), []byte("1"), nil); !hasCode(err, "not_ready") {
		t.Fatalf("a put before the load: %v", err)
	}
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func hasCode(err error, code string) bool {
	var f *engine.Fault
	return errors.As(err, &f) && f.Code == code
}

func names(list []*engine.Object) (all []string) {
	for _, o := range list {
		all = append(all, o.Name)
	}
	return all
}

func TestPutGetListDelete(t *testing.T) {
	cold := memory.NewCold()
	var heard []string
	s := opened(t, cold, Kind{Name: "flow", Changed: func(k engine.ObjectKey) { heard = append(heard, k.Name) }})
	put := func(name, body string, want Result, version uint32) {
		t.Helper()
		got, o, err := s.Put(engine.WithAuthor(t.Context(), "me"), key(name), []byte(body), nil)
		if err != nil || got != want || o.Version != version || s.Get(key(name)) != o || o.UpdatedBy != "me" {
			t.Fatalf("%v %+v %v", got, o, err)
		}
	}
	put("b", "1", Created, 1)
	put("a", "1", Created, 1)
	put("c", "1", Created, 1)
	put("b", "2", Updated, 2)
	put("b", "2", Unchanged, 2)
	if err := s.Delete(t.Context(), key("a"), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), key("a"), nil); !errors.Is(err, engine.ErrNotFound) {
		t.Fatal(err)
	}
	if got := names(s.List("flow", "app")); !slices.Equal(got, []string{"b", "c"}) {
		t.Fatal(got)
	}
	if got := names(s.Page("flow", "app", "b", 5)); !slices.Equal(got, []string{"c"}) {
		t.Fatal(got)
	}
	if want := []string{"", "b", "a", "c", "b", "a"}; !slices.Equal(heard, want) {
		t.Errorf("changes told: %q, want %q", heard, want)
	}
	again := opened(t, cold)
	if o := again.Get(key("b")); o == nil || string(o.Body) != "2" || o.Version != 2 || !slices.Equal(again.Apps("flow"), []string{"app"}) {
		t.Errorf("after a start: %+v", o)
	}
}

// Preconditions and those that name an object refuse a write, and nothing is stored.
func TestRefused(t *testing.T) {
	no := errors.New("no")
	cold := memory.NewCold()
	s := opened(t, cold, Kind{Name: "flow"})
	s.UsedBy("flow", func(engine.ObjectKey) []string { return slices.Repeat([]string{"rule app/r"}, 11) })
	if _, _, err := s.Put(t.Context(), key("a"), []byte("1"), func(o *engine.Object) error {
		if o != nil {
			t.Error("something stands")
		}
		return no
	}); !errors.Is(err, no) || s.Get(key("a")) != nil {
		t.Error(err)
	}
	if _, _, err := s.Put(t.Context(), key("a"), []byte("1"), nil); err != nil {
		t.Error(err)
	}
	if err := s.Delete(t.Context(), key("a"), nil); !hasCode(err, "in_use") || strings.Count(err.Error(), "rule app/r") != 10 {
		t.Error(err)
	}
	if _, _, err := s.Put(t.Context(), key("a*b"), []byte("1"), nil); !hasCode(err, "star_inside") {
		t.Error(err)
	}
	for _, name := range []string{"", "a b", "..", strings.Repeat("n", 129), "ä"} {
		if _, _, err := s.Put(t.Context(), key(name), []byte("1"), nil); !hasCode(err, "bad_name") {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"a:b/c._-9", "*", "user-*", strings.Repeat("n", 128)} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, _, err := s.Put(t.Context(), key("b"), make([]byte, MaxBody+1), nil); !hasCode(err, "too_large") {
		t.Error(err)
	}
}

func TestTooMany(t *testing.T) {
	s := opened(t, memory.NewCold())
	for i := range MaxOfApp {
		if _, _, err := s.Put(t.Context(), key(fmt.Sprint(i)), []byte("1"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Put(t.Context(), key("more"), []byte("1"), nil); !hasCode(err, "too_many_objects") {
		t.Error(err)
	}
	if _, _, err := s.Put(t.Context(), key("7"), []byte("2"), nil); err != nil {
		t.Error(err)
	}
	if err := s.Delete(t.Context(), key("8"), nil); err != nil {
		t.Error(err)
	}
	if _, _, err := s.Put(t.Context(), key("more"), []byte("1"), nil); err != nil {
		t.Error(err)
	}
}

// A put that was made although its outcome was not known shows within a second, and the next
// write goes on from it.
func TestPutInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faulty{Cold: memory.NewCold()}
		s := opened(t, f)
		f.lose = engine.ErrUnavailable
		if _, _, err := s.Put(t.Context(), key("a"), []byte("1"), nil); !errors.Is(err, engine.ErrUnavailable) || s.Get(key("a")) != nil {
			t.Fatal(err)
		}
		f.lose = nil
		if got, o, err := s.Put(t.Context(), key("a"), []byte("2"), nil); err != nil || got != Updated || o.Version != 2 {
			t.Errorf("%v %+v %v", got, o, err)
		}
		f.lose = context.DeadlineExceeded
		_, _, _ = s.Put(t.Context(), key("a"), []byte("3"), nil)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = s.Follow(ctx) }()
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		if o := s.Get(key("a")); string(o.Body) != "3" || o.Version != 3 {
			t.Errorf("%+v", o)
		}
		cancel()
		synctest.Wait()
	})
}

// After a reload an object is the same one unless another node has written it. Only who asks for it is told that the clock was set.
func TestAReloadKeepsWhatIsUnchanged(t *testing.T) {
	cold := memory.NewCold()
	told, steps := 0, 0
	s := New(cold, time.Now, slog.New(slog.DiscardHandler))
	s.Register(Kind{Name: "flow", Changed: func(engine.ObjectKey) { told++ }, ClockSet: func() { steps++ }})
	s.Register(Kind{Name: "secret", Changed: func(engine.ObjectKey) { told++ }})
	if s.ClockSet(t.Context()); steps != 0 {
		t.Error("told of a clock before the load")
	}
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := opened(t, cold)
	for i := range 100 {
		if _, _, err := s.Put(t.Context(), key(fmt.Sprint(i)), []byte("1"), nil); err != nil {
			t.Fatal(err)
		}
	}
	was := s.List("flow", "app")
	if err := other.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := other.Put(t.Context(), key("7"), []byte("2"), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, o := range s.List("flow", "app") {
		if o.Name == "7" && string(o.Body) != "2" || (o == was[i]) != (o.Name != "7") {
			t.Errorf("%s: %q, another one: %v", o.Name, o.Body, o != was[i])
		}
	}
	told = 0
	if s.ClockSet(t.Context()); told != 0 || steps != 1 {
		t.Errorf("told of changes %d times and of the clock %d times", told, steps)
	}
}

// Of many puts those that the store does not have yet are made, also those of which another
// version stands there than in the set.
func TestPutAll(t *testing.T) {
	f := &faulty{Cold: memory.NewCold()}
	var heard int
	s := opened(t, f, Kind{Name: "incident", Uncounted: true, Changed: func(engine.ObjectKey) { heard++ }})
	var puts []Item
	for i := range 1000 {
		k := engine.ObjectKey{Kind: "incident", App: "app", Name: fmt.Sprint(i)}
		puts = append(puts, Item{Key: k, Body: []byte(strings.Repeat("x", 10_000))})
	}
	all := func(want error, version uint32) {
		t.Helper()
		for i, err := range s.PutAll(t.Context(), puts) {
			if o := s.Get(puts[i].Key); !errors.Is(err, want) || want == nil && (o == nil || o.Version != version || string(o.Body) != string(puts[i].Body)) {
				t.Fatalf("%d: %v, %+v", i, err, o)
			}
		}
	}
	all(nil, 1)
	all(nil, 1) // they are as they are
	if heard != 1+1000 {
		t.Errorf("%d changes are told", heard)
	}
	puts[7].Body = []byte("two")
	f.lose = engine.ErrUnavailable
	if err := s.PutAll(t.Context(), puts[:20]); !errors.Is(err[7], engine.ErrUnavailable) || s.Get(puts[7].Key).Version != 1 {
		t.Error(err)
	}
	f.lose = nil
	puts[7].Body, puts[8].Body = []byte("three"), []byte("two")
	if err := errors.Join(s.PutAll(t.Context(), puts[:20])...); err != nil || s.Get(puts[7].Key).Version != 3 || s.Get(puts[8].Key).Version != 2 {
		t.Error(err, s.Get(puts[7].Key).Version)
	}
	more := make([]Item, MaxOfApp)
	for i := range more {
		more[i] = Item{Key: engine.ObjectKey{Kind: "incident", App: "app", Name: fmt.Sprint("more", i)}, Body: []byte("1")}
	}
	if err := errors.Join(s.PutAll(t.Context(), more)...); err != nil || len(s.List("incident", "app")) != 1000+MaxOfApp {
		t.Errorf("%d objects are listed, %v", len(s.List("incident", "app")), err)
	}
	if again := opened(t, f.Cold); string(again.Get(puts[7].Key).Body) != "three" || len(again.List("incident", "app")) != 1000+MaxOfApp {
		t.Error("a start reads other objects")
	}
}

// A damaged object is left out, and a put replaces it.
func TestDamaged(t *testing.T) {
	s := New(&damagedStore{memory.NewCold()}, time.Now, slog.New(slog.DiscardHandler))
	if err := s.Load(t.Context()); err != nil || s.Get(key("b")) != nil {
		t.Fatal(err)
	}
	if got, _, err := s.Put(t.Context(), key("b"), []byte("1"), nil); err != nil || got != Created {
		t.Error(got, err)
	}
}

// damagedStore has a damaged object besides.
type damagedStore struct{ *memory.Cold }

func (d *damagedStore) Objects(_ context.Context, yield func([]engine.Object) error) error {
	return yield([]engine.Object{{ObjectKey: key("b"), Damaged: &engine.Damage{Row: "b", Err: errors.New("cut")}}})
}

// reading is a store that counts how often all objects are read.
type reading struct {
	*memory.Cold
	n     atomic.Int64
	after chan func() // each is called when they have been read once
}

func (r *reading) Objects(ctx context.Context, yield func([]engine.Object) error) error {
	r.n.Add(1)
	err := r.Cold.Objects(ctx, yield)
	select {
	case after := <-r.after:
		after()
	default:
	}
	return err
}

// What another node writes is in the set a second later, also if it is written while the objects
// are read. A kind is told of changes only, and the objects are read after changes and each minute.
func TestFollowOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cold := memory.NewCold()
		store := &reading{Cold: cold, after: make(chan func(), 1)}
		var told atomic.Int64
		s, other := opened(t, store, Kind{Name: "flow", Changed: func(engine.ObjectKey) { told.Add(1) }}), opened(t, cold)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = s.FollowOthers(ctx) }()
		body := func() string {
			time.Sleep(1100 * time.Millisecond)
			synctest.Wait()
			if o := s.Get(key("a")); o != nil {
				return string(o.Body)
			}
			return ""
		}
		for i, want := range []string{"1", "2"} {
			if _, _, err := other.Put(ctx, key("a"), []byte(want), nil); err != nil {
				t.Fatal(err)
			}
			if got := body(); got != want || told.Load() != int64(i+2) || store.n.Load() != int64(i+2) {
				t.Errorf("it has %q, want %q; told %d times; read %d times", got, want, told.Load(), store.n.Load())
			}
		}
		if err := other.Delete(ctx, key("a"), nil); err != nil {
			t.Fatal(err)
		}
		store.after <- func() {
			if _, _, err := other.Put(ctx, key("a"), []byte("3"), nil); err != nil {
				t.Error(err)
			}
		}
		if got := body(); got != "" || told.Load() != 4 || store.n.Load() != 4 {
			t.Errorf("it has %q; told %d times; read %d times", got, told.Load(), store.n.Load())
		}
		if got := body(); got != "3" || told.Load() != 5 || store.n.Load() != 5 {
			t.Errorf("it has %q; told %d times; read %d times", got, told.Load(), store.n.Load())
		}
		for range 2 {
			time.Sleep(unrevised - 2*time.Second)
			if synctest.Wait(); told.Load() != 5 || store.n.Load() != 5 {
				t.Errorf("told %d times, read %d times without a change", told.Load(), store.n.Load())
			}
			time.Sleep(2 * time.Second)
			if synctest.Wait(); told.Load() != 5 || store.n.Load() != 6 {
				t.Errorf("told %d times, read %d times in a minute", told.Load(), store.n.Load())
			}
			store.n.Store(5)
		}
		cancel()
		synctest.Wait()
	})
}

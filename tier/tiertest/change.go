package tiertest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"xtimer/engine"
)

func createIsRead(s *cold) {
	want := shot(7, "a\x00b", t0+hour)
	want.Labels = []engine.Label{{Key: "team", Value: "a"}}
	want.Callback.Headers = []engine.Header{{Name: "X-A", Value: "b"}}
	want.Callback.Body, want.Callback.HasBody = []byte(`{"a":1}`), true
	s.create(want)
	s.sameTimer(s.get(7), want)
	got, err := s.TimerByName(s.ctx, "app", "a\x00b")
	s.ok(err)
	s.sameTimer(got, want)
	_, err = s.Timer(s.ctx, 8)
	s.is(err, engine.ErrNotFound)
	_, err = s.TimerByName(s.ctx, "app", "a")
	s.is(err, engine.ErrNotFound)
	_, err = s.TimerByName(s.ctx, "other", "a\x00b")
	s.is(err, engine.ErrNotFound)
}

func nameIsUnique(s *cold) {
	first := shot(1, "n", t0+hour)
	s.create(first)
	a, err := s.Apply(s.ctx, &engine.Change{Timer: shot(2, "n", t0+hour), ID: 2})
	s.is(err, engine.ErrConflict)
	s.sameTimer(a.Existing, first)
	if a.Replayed {
		s.Fatal("a name is no Idempotency-Key")
	}
	_, err = s.Timer(s.ctx, 2)
	s.is(err, engine.ErrNotFound)

	other := shot(3, "n", t0+hour)
	other.App = "other"
	s.create(other)
	_, err = s.Apply(s.ctx, &engine.Change{Timer: shot(1, "m", t0+hour), ID: 1})
	s.is(err, engine.ErrConflict) // the id is taken
	s.sameTimer(s.get(1), first)
}

func nameIsFreed(s *cold) {
	first := shot(1, "n", t0+hour)
	s.create(first)
	s.delete(first)
	_, err := s.Timer(s.ctx, 1)
	s.is(err, engine.ErrNotFound)
	_, err = s.TimerByName(s.ctx, "app", "n")
	s.is(err, engine.ErrNotFound)
	s.create(shot(2, "n", t0+hour))
	_, err = s.Apply(s.ctx, &engine.Change{ID: 1, Was: 1})
	s.is(err, engine.ErrNotFound)
	_, err = s.Apply(s.ctx, &engine.Change{ID: 1})
	s.is(err, engine.ErrNotFound)
	// Within one ApplyAll, too.
	as := s.ApplyAll(s.ctx, []*engine.Change{
		{ID: 2, Was: 1},
		{Timer: shot(3, "n", t0+hour), ID: 3},
		{Timer: shot(4, "n", t0+hour), ID: 4},
	})
	s.ok(as[0].Err)
	s.ok(as[1].Err)
	s.is(as[2].Err, engine.ErrConflict)
	s.same("existing", as[2].Existing.ID, 3)
}

func nameless(s *cold) {
	s.create(shot(1, "", t0+hour), shot(2, "", t0+hour))
	_, err := s.TimerByName(s.ctx, "app", "")
	s.is(err, engine.ErrNotFound)
	ids := s.list(engine.TimerFilter{App: "app"}, 10)
	slices.Sort(ids)
	s.same("ids", ids, []engine.TimerID{1, 2})
	s.delete(s.get(1))
	s.same("ids", s.list(engine.TimerFilter{App: "app"}, 10), []engine.TimerID{2})
}

func changeWantsVersion(s *cold) {
	v1 := shot(1, "n", t0+hour)
	s.create(v1)
	v2 := edited(v1, func(t *engine.Timer) { t.Callback.URL = "http://127.0.0.1:9/2" })
	s.change(v1, v2)
	s.sameTimer(s.get(1), v2)
	_, err := s.Apply(s.ctx, &engine.Change{Timer: v2, ID: 1, Was: 1})
	s.is(err, engine.ErrConflict)
	_, err = s.Apply(s.ctx, &engine.Change{ID: 1, Was: 1})
	s.is(err, engine.ErrConflict)
	_, err = s.Apply(s.ctx, &engine.Change{Timer: shot(9, "m", t0), ID: 9, Was: 1})
	s.is(err, engine.ErrNotFound)
	s.sameTimer(s.get(1), v2)
}

func outcomesInOrder(s *cold) {
	var cs []*engine.Change
	for i := range 50 {
		id := engine.TimerID(i + 1)
		cs = append(cs, &engine.Change{Timer: shot(id, fmt.Sprint("n", i/2), t0+hour), ID: id})
	}
	for i, a := range s.ApplyAll(s.ctx, cs) {
		if i%2 == 0 {
			s.ok(a.Err)
			continue
		}
		s.is(a.Err, engine.ErrConflict)
		s.same("existing", a.Existing.ID, i)
	}
	s.same("of none", len(s.ApplyAll(s.ctx, nil)), 0)
}

func onceAnswers(s *cold) {
	once := &engine.Once{App: "app", Key: "k", Body: [32]byte{1}, Expires: t0 + day}
	first := shot(1, "n", t0+hour)
	_, err := s.Apply(s.ctx, &engine.Change{Timer: first, ID: 1, Once: once})
	s.ok(err)
	repeat := func(id engine.TimerID, o *engine.Once) (engine.Applied, error) {
		return s.Apply(s.ctx, &engine.Change{Timer: shot(id, "n", t0+hour), ID: id, Once: o})
	}
	a, err := repeat(2, once)
	s.ok(err)
	s.sameTimer(a.Existing, first)
	s.same("replayed", a.Replayed, true)
	_, err = s.Timer(s.ctx, 2)
	s.is(err, engine.ErrNotFound)

	other := *once
	other.Body[0] = 2
	_, err = repeat(3, &other)
	var f *engine.Fault
	if !errors.As(err, &f) || f.Code != "idempotency_key_reused" || f.Kind != engine.FaultInvalid {
		s.Fatalf("another body: %v", err)
	}
	other.App = "other" // a key is an app's own
	_, err = s.Apply(s.ctx, &engine.Change{Timer: shot(4, "m", t0+hour), ID: 4, Once: &other})
	s.ok(err)

	// A repeat after the delete does not make it anew.
	s.delete(first)
	a, err = repeat(5, once)
	s.ok(err)
	s.sameTimer(a.Existing, first)
	_, err = s.Timer(s.ctx, 5)
	s.is(err, engine.ErrNotFound)
}

func onceExpires(s *cold) {
	once := engine.Once{App: "app", Key: "k", Body: [32]byte{1}, Expires: t0 + day}
	_, err := s.Apply(s.ctx, &engine.Change{Timer: shot(1, "n", t0+hour), ID: 1, Once: &once})
	s.ok(err)
	later := shot(2, "m", t0+2*day)
	later.CreatedAt = t0 + day
	again := engine.Once{App: "app", Key: "k", Body: [32]byte{2}, Expires: t0 + 2*day}
	a, err := s.Apply(s.ctx, &engine.Change{Timer: later, ID: 2, Once: &again})
	s.ok(err)
	s.same("existing", a.Existing == nil, true)
	s.sweep(t0+day, 0, 0) // the former row's expiry must not free the new one
	a, err = s.Apply(s.ctx, &engine.Change{Timer: shot(3, "o", t0+2*day), ID: 3, Once: &again})
	s.ok(err)
	s.sameTimer(a.Existing, later)
}

func sameVersion(s *cold) {
	v1 := recurring(1, "n")
	s.create(v1)
	k := engine.Key{Timer: 1, Due: t0 + 5}
	_, err := s.Apply(s.ctx, &engine.Change{
		Timer: v1, ID: 1, Was: 1,
		Owe: []engine.Owed{{Key: k, Generation: 1, Origin: engine.FromManual, NotBefore: t0 + 5}},
	})
	s.ok(err)
	s.sameTimer(s.get(1), v1)
	vs, err := s.Versions(s.ctx, 1, 0, 10)
	s.ok(err)
	s.same("versions", len(vs), 0)
	rows, err := s.OwedPage(s.ctx, 1, -1, 1<<20)
	s.ok(err)
	s.same("owed", rows[0].Key, k)
	s.same("counts", s.counts(), engine.Counts{Enabled: 1})
}

func versionsAreKept(s *cold) {
	v := shot(1, "n", t0+hour)
	s.create(v)
	var want []*engine.Timer
	for range 3 {
		next := edited(v, func(t *engine.Timer) { t.Callback.URL += "x" })
		s.change(v, next)
		want = append([]*engine.Timer{v}, want...)
		v = next
	}
	check := func() {
		s.Helper()
		got, err := s.Versions(s.ctx, 1, 0, 10)
		s.ok(err)
		s.same("versions", len(got), len(want))
		for i := range want {
			s.sameTimer(got[i], want[i])
		}
	}
	check()
	got, err := s.Versions(s.ctx, 1, 0, 1)
	s.ok(err)
	s.same("limit", len(got), 1)
	s.sameTimer(got[0], want[0])
	got, err = s.Versions(s.ctx, 1, want[0].Version, 10)
	s.ok(err)
	s.same("before a version", len(got), 2)
	s.sameTimer(got[0], want[1])
	got, err = s.Versions(s.ctx, 1, 1, 10)
	s.ok(err)
	s.same("before the first", len(got), 0)
	s.delete(v)
	want = append([]*engine.Timer{v}, want...)
	check()
	s.sweep(t0+8*day, t0+day, t0-day)
	check()
	s.sweep(t0+8*day, t0+day, t0+7*day)
	want = nil
	check()
}

func loadKeepsOrder(s *cold) {
	var ts []*engine.Timer
	for id := engine.TimerID(1); id <= 2000; id++ {
		ts = append(ts, shot(id*3, fmt.Sprint(id), t0+hour))
	}
	s.create(ts...)
	ids := []engine.TimerID{30, 7, 3, 30, 6000, 9999, 3 << 40}
	got, err := s.Load(s.ctx, ids)
	s.ok(err)
	s.same("length", len(got), len(ids))
	for i, id := range ids {
		if id%3 != 0 || id > 6000 {
			s.same("missing", got[i] == nil, true)
			continue
		}
		dec, err := engine.DecodeTimer(got[i])
		s.ok(err)
		s.sameTimer(dec, ts[id/3-1])
	}
	var all []engine.TimerID
	for _, t := range slices.Backward(ts) {
		all = append(all, t.ID)
	}
	for _, b := range got {
		clear(b) // they are the caller's
	}
	got, err = s.Load(s.ctx, all)
	s.ok(err)
	for i := range all {
		dec, err := engine.DecodeTimer(got[i])
		s.ok(err)
		s.same("id", dec.ID, all[i])
	}
}

// What is carried in numbers is bounded: of a definition with a large body it is the
// head. Alone it is read whole.
func loadCarriesHeads(s *cold) {
	var ts []*engine.Timer
	for i := range 40 {
		t := shot(engine.TimerID(i+1), fmt.Sprint(i), t0+hour)
		if i%2 == 1 {
			t = recurring(engine.TimerID(i+1), fmt.Sprint(i))
		}
		t.Callback.HasBody, t.Callback.Body = true, bytes.Repeat([]byte{'x'}, []int{10, 10, 100 << 10, 100 << 10}[i%4])
		ts = append(ts, t)
	}
	s.create(ts...)
	carried := func(what string, b []byte, err error) {
		s.Helper()
		s.ok(err)
		got, err := engine.DecodeTimer(b)
		s.ok(err)
		whole := ts[got.ID-1]
		s.same(what+" is whole", got.Omitted == 0, whole.Payload() < engine.MaxCarried)
		s.same("its payload", got.Payload(), whole.Payload())
		s.same("its bytes", len(b) <= engine.MaxCarried, true)
	}
	var ids []engine.TimerID
	for _, t := range ts {
		ids = append(ids, t.ID)
		s.sameTimer(s.get(t.ID), t)
	}
	got, err := s.Load(s.ctx, ids)
	for i := range ids {
		carried("what is loaded", got[i], err)
	}
	s.ok(s.Due(s.ctx, engine.AllShards, t0-minute, t0+day, func(page []engine.Candidate) error {
		for _, c := range page {
			if c.Definition != nil {
				carried("what is due", slices.Clone(c.Definition), nil)
			}
		}
		return nil
	}))
}

package tiertest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"xtimer/engine"
)

func object(kind, app, name string, version uint32, body string) engine.Object {
	return engine.Object{
		ObjectKey: engine.ObjectKey{Kind: kind, App: app, Name: name}, Version: version,
		UpdatedAt: t0 + int64(version), UpdatedBy: "editor", Body: []byte(body),
	}
}

func (s *cold) objects() (all []engine.Object) {
	s.Helper()
	s.ok(s.Objects(s.ctx, func(page []engine.Object) error {
		all = append(all, page...)
		return nil
	}))
	return all
}

func (s *cold) putObject(o *engine.Object, was uint32) error {
	return s.PutObjects(s.ctx, engine.ObjectPut{Object: o, Was: was})
}

func (s *cold) deleteObject(o *engine.Object, was uint32) error {
	stands := *o
	stands.Version = was
	return s.DeleteObjects(s.ctx, &stands)
}

// objectsTogether: of several objects all are stored or deleted, or none.
func objectsTogether(s *cold) {
	var want []engine.Object
	var puts []engine.ObjectPut
	for i := range 300 {
		want = append(want, object("incident", "app", fmt.Sprintf("n%03d", i), 1, strings.Repeat("x", 3000)))
		puts = append(puts, engine.ObjectPut{Object: &want[i]})
	}
	s.ok(s.PutObjects(s.ctx, puts...))
	s.same("new ones", s.objects(), want)
	next, other := object("incident", "app", "n007", 2, "two"), object("incident", "app", "n008", 2, "two")
	s.is(s.PutObjects(s.ctx, engine.ObjectPut{Object: &next, Was: 1}, engine.ObjectPut{Object: &other, Was: 5}), engine.ErrConflict)
	s.same("after a conflict", s.objects(), want)
	first := object("incident", "app", "n000", 2, "two")
	for range 2 {
		s.ok(s.PutObjects(s.ctx, engine.ObjectPut{Object: &next, Was: 1}, engine.ObjectPut{Object: &want[8]}, engine.ObjectPut{Object: &first, Was: 1}))
	}
	want[0], want[7] = first, next
	s.same("changed ones", s.objects(), want)
	of := []*engine.Object{&first, &next}
	for i := 10; i < len(want); i++ {
		of = append(of, &want[i])
	}
	s.is(s.DeleteObjects(s.ctx, append(of, &other)...), engine.ErrConflict)
	s.same("after a conflict of a delete", s.objects(), want)
	s.ok(s.deleteObject(&want[10], 1))
	for range 2 {
		s.ok(s.DeleteObjects(s.ctx, of...))
	}
	want = append(want[1:7:7], want[8:10]...)
	s.same("those that were not deleted", s.objects(), want)
	s.ok(s.Close())
	s.ok(s.Open(s.ctx))
	s.same("after a restart", s.objects(), want)
}

func objectVersions(s *cold) {
	s.same("none", len(s.objects()), 0)
	one, two := object("flow", "app", "a", 1, `{"rate":1}`), object("flow", "app", "a", 2, `{"rate":2}`)
	s.is(s.putObject(&two, 1), engine.ErrConflict)
	s.ok(s.putObject(&one, 0))
	s.same("one", s.objects(), []engine.Object{one})
	other := object("flow", "app", "a", 1, `{"rate":3}`)
	s.is(s.putObject(&other, 0), engine.ErrConflict)
	s.ok(s.putObject(&two, 1))
	s.is(s.putObject(&other, 1), engine.ErrConflict)
	s.same("two", s.objects(), []engine.Object{two})
	s.is(s.deleteObject(&two, 1), engine.ErrConflict)
	s.ok(s.deleteObject(&two, 2))
	s.same("deleted", len(s.objects()), 0)
	s.ok(s.putObject(&other, 0))
	s.ok(s.Close())
	s.ok(s.Open(s.ctx))
	s.same("after a restart", s.objects(), []engine.Object{other})
}

func objectRepeated(s *cold) {
	one, two := object("flow", "app", "a", 1, "1"), object("flow", "app", "a", 2, "2")
	for range 2 {
		s.ok(s.putObject(&one, 0))
	}
	for range 2 {
		s.ok(s.putObject(&two, 1))
	}
	s.is(s.putObject(&one, 0), engine.ErrConflict)
	for range 2 {
		s.ok(s.deleteObject(&two, 2))
	}
}

// objectsRevised is for tiers whose objects other processes change too.
func objectsRevised(s *cold) {
	tier, is := s.Cold.(engine.Revised)
	if !is {
		return
	}
	last, err := tier.ObjectsRevision(s.ctx)
	s.ok(err)
	revised := func(what string, want bool) {
		s.Helper()
		now, err := tier.ObjectsRevision(s.ctx)
		s.ok(err)
		s.same(what, now != last, want)
		last = now
	}
	one, two, other := object("flow", "app", "a", 1, "1"), object("flow", "app", "a", 2, "2"), object("flow", "app", "b", 1, "1")
	s.is(s.putObject(&two, 1), engine.ErrConflict)
	revised("a put that is refused", false)
	s.ok(s.putObject(&one, 0))
	revised("a put", true)
	s.ok(s.putObject(&one, 0))
	revised("a repeated put", false)
	s.ok(s.PutObjects(s.ctx, engine.ObjectPut{Object: &other}, engine.ObjectPut{Object: &two, Was: 1}))
	revised("a put of several", true)
	s.is(s.deleteObject(&two, 1), engine.ErrConflict)
	revised("a delete that is refused", false)
	s.ok(s.deleteObject(&two, 2))
	revised("a delete", true)
	s.ok(s.deleteObject(&two, 2))
	revised("a repeated delete", false)
	s.ok(s.Close())
	s.ok(s.Open(s.ctx))
	revised("a restart", false)
}

func objectPages(s *cold) {
	var want []engine.Object
	for _, kind := range []string{"channel", "flow"} {
		for _, app := range []string{"*", "app", "app2"} {
			for i := range 60 {
				want = append(want, object(kind, app, fmt.Sprintf("n:%d/*", i), 1, `"x"`))
			}
		}
	}
	odd := object("flow", "a", "\x00'\\\xff"+strings.Repeat("n", 250), 1, "")
	odd.Body = bytes.Repeat([]byte{0, 1, '\'', '\\', 0xff}, 12<<10)
	want = append(want, odd)
	for i := range want {
		s.ok(s.putObject(&want[i], 0))
	}
	slices.SortFunc(want, func(a, b engine.Object) int { return a.Compare(b.ObjectKey) })
	s.same("objects", s.objects(), want)
	enough := errors.New("enough")
	s.is(s.Objects(s.ctx, func([]engine.Object) error { return enough }), enough)
}

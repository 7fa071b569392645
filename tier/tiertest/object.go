package tiertest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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

func objectVersions(s *cold) {
	s.same("none", len(s.objects()), 0)
	one, two := object("flow", "app", "a", 1, `{"rate":1}`), object("flow", "app", "a", 2, `{"rate":2}`)
	s.is(s.PutObject(s.ctx, &two, 1), engine.ErrConflict)
	s.ok(s.PutObject(s.ctx, &one, 0))
	s.same("one", s.objects(), []engine.Object{one})
	other := object("flow", "app", "a", 1, `{"rate":3}`)
	s.is(s.PutObject(s.ctx, &other, 0), engine.ErrConflict)
	s.ok(s.PutObject(s.ctx, &two, 1))
	s.is(s.PutObject(s.ctx, &other, 1), engine.ErrConflict)
	s.same("two", s.objects(), []engine.Object{two})
	s.is(s.DeleteObject(s.ctx, two.ObjectKey, 1), engine.ErrConflict)
	s.ok(s.DeleteObject(s.ctx, two.ObjectKey, 2))
	s.same("deleted", len(s.objects()), 0)
	s.ok(s.PutObject(s.ctx, &other, 0))
	s.ok(s.Close())
	s.ok(s.Open(s.ctx))
	s.same("after a restart", s.objects(), []engine.Object{other})
}

func objectRepeated(s *cold) {
	one, two := object("flow", "app", "a", 1, "1"), object("flow", "app", "a", 2, "2")
	for range 2 {
		s.ok(s.PutObject(s.ctx, &one, 0))
	}
	for range 2 {
		s.ok(s.PutObject(s.ctx, &two, 1))
	}
	s.is(s.PutObject(s.ctx, &one, 0), engine.ErrConflict)
	for range 2 {
		s.ok(s.DeleteObject(s.ctx, two.ObjectKey, 2))
	}
}

func oneObjectWins(s *cold) {
	var wg sync.WaitGroup
	var won atomic.Int32
	for i := range 16 {
		wg.Go(func() {
			o := object("flow", "app", "a", 1, fmt.Sprint(i))
			switch err := s.PutObject(s.ctx, &o, 0); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, engine.ErrConflict):
				s.Error(err)
			}
		})
	}
	wg.Wait()
	s.same("winners", won.Load(), 1)
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
		s.ok(s.PutObject(s.ctx, &want[i], 0))
	}
	slices.SortFunc(want, func(a, b engine.Object) int { return a.Compare(b.ObjectKey) })
	s.same("objects", s.objects(), want)
	enough := errors.New("enough")
	s.is(s.Objects(s.ctx, func([]engine.Object) error { return enough }), enough)
}

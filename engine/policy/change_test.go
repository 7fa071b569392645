package policy

import (
	"errors"
	"testing"

	"xtimer/engine"
)

// store is a Standing of a few timers and keys; every read fails when away.
type store struct {
	timers []*engine.Timer
	use    *Use
	former *engine.Timer
	away   error
}

func (s *store) Named(app, name string) (*engine.Timer, error) {
	for _, t := range s.timers {
		if name != "" && t.App == app && t.Name == name {
			return t, s.away
		}
	}
	return nil, s.away
}

func (s *store) Used(app, key string) (*Use, error) { return s.use, s.away }

func (s *store) Made(id engine.TimerID) (*engine.Timer, error) {
	for _, t := range s.timers {
		if t.ID == id {
			return t, s.away
		}
	}
	return s.former, s.away
}

func timer(id engine.TimerID, version uint32, name string) *engine.Timer {
	return &engine.Timer{ID: id, Version: version, Definition: engine.Definition{App: "app", Name: name}, CreatedAt: 1000}
}

func TestJudge(t *testing.T) {
	a1, b1 := timer(1, 1, "a"), timer(2, 1, "b")
	body, other := [32]byte{1}, [32]byte{2}
	key := &engine.Once{App: "app", Key: "k", Body: body}
	live, expired := &Use{Timer: 1, Body: body, Expires: 1001}, &Use{Timer: 1, Body: body, Expires: 1000}
	away := errors.New("away")
	for _, c := range []struct {
		what string
		c    engine.Change
		old  *engine.Timer
		s    store
		want engine.Applied
	}{
		{what: "create", c: engine.Change{Timer: b1}},
		{what: "create, name taken", c: engine.Change{Timer: timer(3, 1, "a")}, s: store{timers: []*engine.Timer{a1}}, want: engine.Applied{Existing: a1, Err: engine.ErrConflict}},
		{what: "create, id taken", c: engine.Change{Timer: timer(1, 1, "c")}, old: a1, s: store{timers: []*engine.Timer{a1}}, want: engine.Applied{Err: engine.ErrConflict}},
		{what: "create, away", c: engine.Change{Timer: b1}, s: store{away: away}, want: engine.Applied{Err: away}},
		{what: "repeat", c: engine.Change{Timer: timer(3, 1, "a"), Once: key}, s: store{timers: []*engine.Timer{a1}, use: live}, want: engine.Applied{Existing: a1, Replayed: true}},
		{what: "repeat of a deleted one", c: engine.Change{Timer: timer(3, 1, "a"), Once: key}, s: store{former: a1, use: live}, want: engine.Applied{Existing: a1, Replayed: true}},
		{what: "repeat of a forgotten one", c: engine.Change{Timer: timer(3, 1, "a"), Once: key}, s: store{use: live}, want: engine.Applied{Replayed: true, Err: engine.ErrNotFound}},
		{what: "key expired", c: engine.Change{Timer: timer(3, 1, "c"), Once: key}, s: store{timers: []*engine.Timer{a1}, use: expired}},
		{what: "key reused", c: engine.Change{Timer: timer(3, 1, "c"), Once: key}, s: store{use: &Use{Timer: 1, Body: other, Expires: 1001}}, want: engine.Applied{Err: errKeyReused}},
		{what: "a key is of creates", c: engine.Change{Timer: timer(1, 2, "c"), Was: 1, Once: key}, old: a1, s: store{timers: []*engine.Timer{a1}, use: live}},
		{what: "change", c: engine.Change{Timer: timer(1, 2, "a"), Was: 1}, old: a1, s: store{timers: []*engine.Timer{a1}}},
		{what: "change asks for no name it keeps", c: engine.Change{Timer: timer(1, 2, "a"), Was: 1}, old: a1, s: store{away: away}},
		{what: "change of none", c: engine.Change{Timer: timer(1, 2, "a"), Was: 1}, want: engine.Applied{Err: engine.ErrNotFound}},
		{what: "change of another version", c: engine.Change{Timer: timer(1, 3, "a"), Was: 2}, old: a1, want: engine.Applied{Err: engine.ErrConflict}},
		{what: "rename", c: engine.Change{Timer: timer(1, 2, "c"), Was: 1}, old: a1, s: store{timers: []*engine.Timer{a1, b1}}},
		{what: "rename, name taken", c: engine.Change{Timer: timer(1, 2, "b"), Was: 1}, old: a1, s: store{timers: []*engine.Timer{a1, b1}}, want: engine.Applied{Existing: b1, Err: engine.ErrConflict}},
		{what: "delete", c: engine.Change{ID: 1, Was: 1}, old: a1, s: store{away: away}},
		{what: "delete of none", c: engine.Change{ID: 1, Was: 1}, want: engine.Applied{Err: engine.ErrNotFound}},
		{what: "delete without a version", c: engine.Change{ID: 1}, old: a1, want: engine.Applied{Err: engine.ErrConflict}},
		{what: "delete of none without a version", c: engine.Change{ID: 1}, want: engine.Applied{Err: engine.ErrNotFound}},
	} {
		if got := Judge(&c.c, c.old, &c.s); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.what, got, c.want)
		}
	}
}

func TestSameDues(t *testing.T) {
	at := timer(1, 1, "a")
	for what, want := range map[string]struct {
		edit func(*engine.Timer)
		same bool
	}{
		"callback":   {func(t *engine.Timer) { t.Version, t.Callback.URL = 2, "http://h/" }, true},
		"schedule":   {func(t *engine.Timer) { t.Schedule.Cron = "* * * * *" }, false},
		"status":     {func(t *engine.Timer) { t.Status = engine.Disabled }, false},
		"generation": {func(t *engine.Timer) { t.Generation++ }, false},
		"valid from": {func(t *engine.Timer) { t.ValidFrom++ }, false},
	} {
		to := *at
		if want.edit(&to); SameDues(at, &to) != want.same {
			t.Errorf("a change of the %s: same dues is %v", what, !want.same)
		}
	}
}

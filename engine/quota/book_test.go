package quota

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/engine"
)

// An app counts as refused for a minute after its quota refused a create or a change, whatever it was
// refused for, and no longer than it has that quota.
func TestRefusing(t *testing.T) {
	for name, x := range map[string]struct {
		limits Limits
		refuse func(t *testing.T, b *Book) error
	}{
		"a create too fast": {Limits{CreatesPerSecond: 1}, func(_ *testing.T, b *Book) error {
			_ = b.Create(app)
			return b.Create(app)
		}},
		"a timer too many": {Limits{Timers: 1}, func(t *testing.T, b *Book) error {
			under, err := b.Begin(t.Context(), app)
			if err != nil {
				t.Fatal(err)
			}
			defer under.End()
			for id := range engine.TimerID(2) {
				var room Room
				if room, err = under.Take(nil, &engine.Timer{ID: id, Definition: engine.Definition{App: app}, Status: engine.Enabled}, nil); err == nil {
					defer room.End(true)
				}
			}
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := (&store{owned: engine.AllShards}).book()
				limit(b, x.limits, true)
				b.put("other", &engine.Object{ObjectKey: Key("other"), Body: x.limits.Body()}, true)
				time.Sleep(time.Hour)
				refusing := func(want ...string) {
					t.Helper()
					if got := b.Refusing(); fmt.Sprint(got) != fmt.Sprint(want) {
						t.Errorf("%q are refused, want %q", got, want)
					}
				}
				refusing()
				if err := x.refuse(t, b); err == nil {
					t.Fatal("nothing was refused")
				}
				refusing(app)
				time.Sleep(59 * time.Second)
				refusing(app)
				time.Sleep(time.Second)
				refusing()
				if err := x.refuse(t, b); err == nil {
					t.Fatal("nothing was refused")
				}
				refusing(app)
				limit(b, Limits{}, false)
				refusing()
			})
		})
	}
}

// To ask whether a change is allowed takes no room, and refuses nothing.
func TestAllows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := (&store{owned: engine.AllShards}).book()
		limit(b, Limits{Timers: 1, Bytes: 100}, true)
		under, err := b.Begin(t.Context(), app)
		if err != nil {
			t.Fatal(err)
		}
		defer under.End()
		timer := func(id engine.TimerID, body int) *engine.Timer {
			d := engine.Definition{App: app, Callback: engine.Callback{Body: make([]byte, body)}}
			return &engine.Timer{ID: id, Definition: d, Status: engine.Enabled}
		}
		one, large := timer(1, 1), timer(1, 200)
		for range 2 {
			if err := under.Allows(nil, one); err != nil {
				t.Error(err)
			}
		}
		if under.Allows(nil, large) == nil {
			t.Error("200 bytes are allowed")
		}
		room, err := under.Take(nil, one, nil)
		if err != nil {
			t.Fatal(err)
		}
		room.End(true)
		if under.Allows(nil, timer(2, 1)) == nil || under.Allows(one, large) == nil {
			t.Error("what is too much is allowed")
		}
		if err := under.Allows(one, timer(1, 2)); err != nil {
			t.Error(err)
		}
		if got := b.Refusing(); len(got) > 0 {
			t.Errorf("%q are refused", got)
		}
	})
}

func TestCheck(t *testing.T) {
	for name, x := range map[string]struct {
		app    string
		limits Limits
		want   string // the code of the error
	}{
		"all apps":          {"*", Limits{Timers: 1}, "bad_name"},
		"nothing":           {app, Limits{}, "nothing_limited"},
		"timers":            {app, Limits{Timers: 1}, ""},
		"bytes":             {app, Limits{Bytes: 1}, ""},
		"creates":           {app, Limits{CreatesPerSecond: 1}, ""},
		"fires":             {app, Limits{FiresPerSecond: 1}, ""},
		"in flight":         {app, Limits{InFlight: 1}, ""},
		"nothing, all apps": {"*", Limits{}, "bad_name"},
	} {
		got := ""
		if err := x.limits.Check(x.app); err != nil {
			got = err.(*engine.Fault).Code
		}
		if got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}

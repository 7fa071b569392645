package tiertest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	"xtimer/engine"
)

// zoo makes timers of three apps, all statuses and some labels.
func (s *cold) zoo(n int) (ts []*engine.Timer) {
	s.Helper()
	for i := range n {
		id := engine.TimerID(i*7 + 1)
		t := shot(id, fmt.Sprintf("%c-%d", 'a'+i%5, i), t0+hour+int64(i))
		if i%3 == 0 {
			t = recurring(id, t.Name)
		}
		t.App = fmt.Sprint("app", i%3)
		t.Status = engine.Status([]int{0, 0, 1, 2}[i%4])
		if i%2 == 0 {
			t.Labels = append(t.Labels, engine.Label{Key: "env", Value: fmt.Sprint("e", i%6)})
		}
		if i%4 < 2 {
			t.Labels = append(t.Labels, engine.Label{Key: "team", Value: "t"})
		}
		ts = append(ts, t)
	}
	s.create(ts...)
	return ts
}

func filters() []engine.TimerFilter {
	label := func(ms ...engine.LabelMatch) engine.TimerFilter { return engine.TimerFilter{Labels: ms} }
	fs := []engine.TimerFilter{
		{},
		{App: "app1"},
		{App: "none"},
		{NamePrefix: "a-"},
		{App: "app2", NamePrefix: "b"},
		{Search: "A-1"},
		{App: "app1", Search: "2"},
		{HasStatus: true, Status: engine.Finished, Search: "c"},
		{HasStatus: true, Status: engine.Enabled},
		{HasStatus: true, Status: engine.Disabled},
		{HasStatus: true, Status: engine.Finished},
		{HasStatus: true, Status: engine.Enabled, App: "app0"},
		{HasStatus: true, Status: engine.Finished, App: "app0"},
		{HasStatus: true, Status: engine.Disabled, App: "app1", NamePrefix: "c"},
		label(engine.LabelMatch{Key: "env", Value: "e2"}),
		label(engine.LabelMatch{Key: "env", Value: "e2"}, engine.LabelMatch{Key: "team", Value: "t"}),
		label(engine.LabelMatch{Key: "env", Value: "e2", Not: true}),
		label(engine.LabelMatch{Key: "team", Value: "t", Not: true}, engine.LabelMatch{Key: "env", Value: "e0"}),
		label(engine.LabelMatch{Key: "env", Value: ""}), // no such label
		label(engine.LabelMatch{Key: "env", Value: "", Not: true}),
	}
	mixed := label(engine.LabelMatch{Key: "team", Value: "t"})
	mixed.App, mixed.HasStatus = "app1", true
	return append(fs, mixed)
}

func listPages(s *cold) {
	ts := s.zoo(100)
	for _, limit := range []int{1, 7, 50, 99, 100, 101, 1000} {
		ids := s.list(engine.TimerFilter{}, limit)
		slices.Sort(ids)
		s.same(fmt.Sprint("pages of ", limit), len(ids), len(ts))
		s.same("twice", len(slices.Compact(ids)), len(ts))
	}
}

func listFilters(s *cold) {
	ts := s.zoo(120)
	for _, f := range filters() {
		var want []engine.TimerID
		for _, t := range ts {
			if f.Matches(t) {
				want = append(want, t.ID)
			}
		}
		for _, limit := range []int{3, 1000} {
			got := s.list(f, limit)
			slices.Sort(got)
			s.same(fmt.Sprintf("%+v by %d", f, limit), got, want)
		}
	}
}

// listLarge: a page may be cut where it is large, in what it tells and in what it
// passes over.
func listLarge(s *cold) {
	body := bytes.Repeat([]byte{'x'}, 500<<10)
	var all []engine.TimerID
	for i := range 49 {
		t := shot(engine.TimerID(i*7+1), fmt.Sprintf("a-%02d", i), t0+hour)
		t.Labels = []engine.Label{{Key: "env", Value: "e"}}
		if t.Callback.Body, t.Callback.HasBody = body, true; i == 48 {
			t.Name, t.Callback.Body = "z", nil
		}
		s.create(t)
		all = append(all, t.ID)
	}
	for _, f := range []engine.TimerFilter{
		{}, {App: "app"}, {HasStatus: true}, {HasStatus: true, App: "app"}, {Labels: []engine.LabelMatch{{Key: "env", Value: "e"}}},
	} {
		s.same(fmt.Sprintf("%+v", f), s.list(f, 1000), all)
	}
	s.same("the last alone", s.list(engine.TimerFilter{NamePrefix: "z"}, 1000), all[48:])
}

func listUnderWrites(s *cold) {
	ts := s.zoo(300)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			id := engine.TimerID(i*7 + 3) // between those of the zoo
			t := shot(id, fmt.Sprint("z", i), t0+hour)
			t.App = "app1"
			if _, err := s.Apply(s.ctx, &engine.Change{Timer: t, ID: id}); err != nil {
				s.Error(err)
				return
			}
			if _, err := s.Apply(s.ctx, &engine.Change{ID: id, Was: 1}); err != nil {
				s.Error(err)
				return
			}
		}
	})
	for _, f := range []engine.TimerFilter{{}, {App: "app1"}, {HasStatus: true}} {
		seen := map[engine.TimerID]int{}
		for _, id := range s.list(f, 10) {
			seen[id]++
		}
		for _, t := range ts {
			if want := f.Matches(t); want && seen[t.ID] != 1 {
				s.Errorf("%+v: timer %d was told %d times", f, t.ID, seen[t.ID])
			}
		}
	}
	close(stop)
	wg.Wait()
}

func cursorIsChecked(s *cold) {
	s.zoo(50)
	_, next, err := s.Timers(s.ctx, engine.TimerFilter{}, "", 10)
	s.ok(err)
	altered := []string{"x", "!", next + "A", next[1:], next[:len(next)-1]}
	for i := range next {
		b := []byte(next)
		b[i] ^= 1
		altered = append(altered, string(b))
	}
	for _, c := range altered {
		_, _, err := s.Timers(s.ctx, engine.TimerFilter{}, c, 10)
		var f *engine.Fault
		if !errors.As(err, &f) || f.Kind != engine.FaultMalformed || len(f.Fields) != 1 || f.Fields[0].Field != "cursor" {
			s.Fatalf("cursor %q for %q: %v", c, next, err)
		}
	}
}

func (s *cold) counts() engine.Counts {
	s.Helper()
	n, err := s.Counts(s.ctx)
	s.ok(err)
	return n
}

func countsFollow(s *cold) {
	s.same("empty", s.counts(), engine.Counts{})
	a, b := shot(1, "a", t0+hour), recurring(2, "b")
	s.create(a, b)
	s.same("two", s.counts(), engine.Counts{Enabled: 2})
	off := edited(b, func(t *engine.Timer) { t.Status = engine.Disabled })
	s.change(b, off)
	s.same("disabled", s.counts(), engine.Counts{Enabled: 1, Disabled: 1})
	s.delete(off)
	s.same("deleted", s.counts(), engine.Counts{Enabled: 1})
	s.watermark(t0 + hour)
	s.sweep(t0+hour, 0, 0)
	s.same("finished", s.counts(), engine.Counts{Finished: 1})
	s.sweep(t0+10*day, t0+9*day, 0)
	s.same("removed", s.counts(), engine.Counts{})
}

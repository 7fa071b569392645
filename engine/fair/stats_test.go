package fair

import (
	"fmt"
	"slices"
	"testing"
)

// manyOf is a queue with so many lanes, of ten apps, each with an item and for a target of its
// own that was lowered by timeouts.
func manyOf(lanes int) *Queue[int] {
	q := New(Config[int]{Places: 100, PerApp: 100, PerTarget: 48, Run: func(int) Result { return Result{} }})
	for i := range lanes {
		l := q.Lane(fmt.Sprint("app", i%10), fmt.Sprint("http://", i), "")
		q.mu.Lock()
		l.waiting, l.target.most = 1, 1
		q.list(l.target)
		q.mu.Unlock()
	}
	return q
}

// What is described in pieces is described once each, also while lanes and limited targets come
// and go.
func TestLookInPieces(t *testing.T) {
	const lanes = 5*piece + 3
	q := manyOf(lanes)
	name := func(s LaneStats) string { return s.Target }
	want := lanes
	for range 3 {
		s, ls := q.Stats(2*lanes), q.Lanes(func(string) bool { return true })
		if s.Limited != want || len(s.Targets) != want || len(ls) != want {
			t.Errorf("%d limited targets, %d described, and %d lanes, want %d", s.Limited, len(s.Targets), len(ls), want)
		}
		if one := q.Lanes(func(app string) bool { return app == "app3" }); len(one) > len(ls)/10+1 || one[0].App != "app3" {
			t.Errorf("%d lanes of one app, the first of %s", len(one), one[0].App)
		}
		var names []string
		for _, l := range ls {
			names = append(names, name(l))
		}
		slices.Sort(names)
		if n := len(slices.Compact(names)); n != want {
			t.Errorf("%d lanes are described", n)
		}
		q.mu.Lock()
		for _, l := range q.listed[piece:] { // only the others have items
			l.waiting = 0
		}
		q.prune()
		q.mu.Unlock()
		want = piece
	}

	q = manyOf(lanes)
	stop := make(chan struct{})
	defer close(stop)
	go func() { // half of the targets are limited and not
		for i := 0; ; i = (i + 1) % lanes {
			select {
			case <-stop:
				return
			default:
			}
			q.mu.Lock()
			tg := q.targets[fmt.Sprint("http://", i/2*2)]
			tg.most = 49 - tg.most
			q.list(tg)
			q.mu.Unlock()
		}
	}()
	for range 20 {
		seen := map[string]bool{}
		for _, x := range q.Stats(2 * lanes).Targets {
			if seen[x.Target] {
				t.Fatalf("%s is described twice", x.Target)
			}
			seen[x.Target] = true
		}
		for i := 1; i < lanes; i += 2 {
			if !seen[fmt.Sprint("http://", i)] {
				t.Fatalf("target %d is not described, though it was limited all the time", i)
			}
		}
	}
}

// BenchmarkLook describes 100,000 lanes and their targets: in all, and what is described while the
// queue is locked.
func BenchmarkLook(b *testing.B) {
	q := manyOf(100_000)
	lanes, targets := make([]LaneStats, 0, piece), make([]TargetStats, 0, piece)
	for _, x := range []struct {
		name string
		look func()
	}{
		{"lanes", func() { q.Lanes(func(string) bool { return true }) }},
		{"lanes,locked", func() { q.describe(lanes, q.listed[5000:5000+piece]) }},
		{"lanes-of-an-app", func() { q.Lanes(func(app string) bool { return app == "app3" }) }},
		{"targets", func() { q.Stats(10) }},
		{"targets,locked", func() { q.describeLimited(targets, 5000, 5000+piece) }},
	} {
		b.Run(x.name, func(b *testing.B) {
			for b.Loop() {
				x.look()
			}
		})
	}
}

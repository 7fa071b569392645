package fair

import (
	"slices"
	"testing"
)

// A queue that has a part of the work keeps that part of the bounds of apps and targets, and
// all of them when it has all of the work again.
func TestPart(t *testing.T) {
	byHand(t, 1000, 80, 60, func(q *hand) {
		q.trust("a", "x", "y")
		part := 1
		set := func(n int) {
			part = n
			q.SetPart(func() int { return part }, 4)
		}
		set(1)
		for range 2000 {
			q.push(q.call("a", "x", 5, 0), q.call("b", "x", 5, 0), q.call("a", "y", 5, 0))
		}
		flying := q.look()
		count := func() (app, target int) {
			for _, c := range flying {
				if c.app == "a" {
					app++
				}
				if c.to == "x" {
					target++
				}
			}
			return app, target
		}
		if app, target := count(); app < 10 || app > 15 || target < 15 || target > 20 {
			t.Errorf("a quarter: %d calls of an app and %d to a target, of 60 and 80", app, target)
		}
		set(4)
		for range 20 { // the limit of a target rises with its answers
			for _, c := range flying {
				c.end()
			}
			flying = q.look()
		}
		if app, target := count(); app < 40 || app > 60 || target < 40 || target > 80 {
			t.Errorf("all: %d calls of an app and %d to a target, of 60 and 80", app, target)
		}
		set(0)
		for len(flying) > 1 {
			flying[0].end()
			flying = flying[1:]
			for _, m := range q.look() {
				if slices.ContainsFunc(flying, func(c *call) bool { return c.app == m.app || c.to == m.to }) {
					t.Fatalf("%d calls in flight, and a queue without a part began another of app %s to %s", len(flying), m.app, m.to)
				}
				flying = append(flying, m)
			}
		}
		for _, c := range flying {
			c.end()
		}
	})
}

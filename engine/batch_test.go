package engine

import "testing"

// Two timers share a call if no more than the bodies of their callbacks differ.
func TestTogetherWith(t *testing.T) {
	whole := func(change func(*Timer)) *Timer {
		x := &Timer{Definition: NewDefinition()}
		x.App, x.Callback.URL, x.Callback.Batch = "shop", "http://a.example/x", &Batch{Max: 10}
		x.Callback.Headers = []Header{{Name: "A", Value: "1"}}
		change(x)
		return x
	}
	for name, c := range map[string]struct {
		change func(*Timer)
		goes   bool
	}{
		"name, body":    {func(x *Timer) { x.Name = "n"; x.Callback.HasBody, x.Callback.Body = true, []byte("1") }, true},
		"kind of body":  {func(x *Timer) { x.Callback.HasBody, x.Callback.BodyKind = true, BodyText }, true},
		"app":           {func(x *Timer) { x.App = "other" }, false},
		"delivery":      {func(x *Timer) { x.Delivery = AtMostOnce }, false},
		"url":           {func(x *Timer) { x.Callback.URL += "y" }, false},
		"method":        {func(x *Timer) { x.Callback.Method = "PUT" }, false},
		"header":        {func(x *Timer) { x.Callback.Headers = []Header{{Name: "A", Value: "2"}} }, false},
		"secret header": {func(x *Timer) { x.Callback.Headers = []Header{{Name: "A", Secret: "1"}} }, false},
		"timeout":       {func(x *Timer) { x.Callback.Timeout++ }, false},
		"success":       {func(x *Timer) { x.Callback.Success = "200" }, false},
		"max":           {func(x *Timer) { x.Callback.Batch.Max = 11 }, false},
		"no batch":      {func(x *Timer) { x.Callback.Batch = nil }, false},
	} {
		a, b := whole(func(*Timer) {}), whole(c.change)
		if a.TogetherWith(b) != c.goes || b.TogetherWith(a) != c.goes {
			t.Errorf("%s: together is not %v", name, c.goes)
		}
		if (a.BatchClass() == b.BatchClass()) != c.goes && name != "app" {
			t.Errorf("%s: the classes are %d and %d", name, a.BatchClass(), b.BatchClass())
		}
	}
}

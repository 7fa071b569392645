package memory

import (
	"testing"

	"xtimer/engine"
	"xtimer/tier/tiertest"
)

func TestCold(t *testing.T) {
	tiertest.Cold(t, func(*testing.T) engine.Cold { return NewCold() })
}

// TestDamagedOwed: a tier in memory has a row that cannot be read if it is told that it has.
func TestDamagedOwed(t *testing.T) {
	tiertest.DamagedOwed(t, func(*testing.T) (engine.Cold, func(engine.Key)) {
		c := NewCold()
		return c, func(k engine.Key) {
			o := c.owed.get(k)
			c.owed.put(engine.Owed{Key: k, NotBefore: o.NotBefore, Lane: o.Lane, Damaged: engine.ReadOwed(k, nil).Damaged})
		}
	})
}

func TestWarm(t *testing.T) {
	tiertest.Warm(t, func(*testing.T) engine.Warm { return NewWarm() })
}

func TestMembers(t *testing.T) {
	tiertest.Members(t, func(*testing.T) func() (engine.Cold, engine.Members) {
		c := NewCold()
		m := NewMembers(c)
		return func() (engine.Cold, engine.Members) { return c, m }
	})
}

func TestMirror(t *testing.T) {
	tiertest.Mirror(t, func(*testing.T) engine.Mirror { return NewMirror() })
}

package memory

import (
	"testing"

	"xtimer/engine"
	"xtimer/tier/tiertest"
)

func TestCold(t *testing.T) {
	tiertest.Cold(t, func(*testing.T) engine.Cold { return NewCold() })
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

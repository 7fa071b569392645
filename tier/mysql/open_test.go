package mysql

import (
	"errors"
	"testing"

	"xtimer/engine"
)

// The API answers before there is a connection: what is asked of the store then says
// that it is away.
func TestReadsBeforeItIsOpen(t *testing.T) {
	s := New(Config{DSN: "user:password@tcp(127.0.0.1:1)/db"})
	if _, err := s.Timer(t.Context(), 1); !errors.Is(err, engine.ErrUnavailable) {
		t.Error(err)
	}
	if _, err := s.OwedPage(t.Context(), 1, -1, 1<<20); !errors.Is(err, engine.ErrUnavailable) {
		t.Error(err)
	}
	if err := s.Open(t.Context()); !errors.Is(err, engine.ErrUnavailable) {
		t.Error("open:", err)
	}
	if _, err := s.TimerByName(t.Context(), "a", "b"); !errors.Is(err, engine.ErrUnavailable) {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

package target

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// call calls a target as xtimer does.
func (s *Server) call(ctx context.Context, due int64, attempt int) error {
	r, err := http.NewRequestWithContext(ctx, "POST", s.URL, strings.NewReader("{}"))
	if err != nil {
		return err
	}
	r.Header.Set("X-Xtimer-Task", fmt.Sprintf("7_%d", due))
	r.Header.Set("X-Xtimer-Attempt", fmt.Sprint(attempt))
	answer, err := http.DefaultClient.Do(r)
	if err == nil {
		answer.Body.Close()
	}
	return err
}

// TestMute: a mute target notes calls, and answers those that are still waited for
// once it is no longer mute.
func TestMute(t *testing.T) {
	s, err := ListenMute()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	due := time.Now().UnixMilli()
	noted := func(want int) {
		for calls := 0; calls < want; time.Sleep(time.Millisecond) {
			s.Look(func(l *Log) { calls = l.Calls[Key{7, due}] })
		}
	}
	short, cancel := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() { answered <- s.call(short, due, 1) }()
	noted(1)
	cancel()
	if <-answered == nil {
		t.Fatal("a mute target has answered")
	}
	go func() { answered <- s.call(t.Context(), due, 2) }()
	noted(2)
	s.Answer()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if err := s.call(t.Context(), due, 3); err != nil {
		t.Error(err)
	}
}

// TestLog: lateness and order are those of first attempts.
func TestLog(t *testing.T) {
	var l Log
	l.reset()
	now := time.UnixMilli(10_000)
	for _, c := range []call{
		{Key: Key{7, 9000}, attempt: 1},
		{Key: Key{7, 8500}, attempt: 1},                    // within what calls at once may do
		{Key: Key{8, 7000}, attempt: 1},                    // another timer
		{Key: Key{7, 7000}, attempt: 1},                    // out of order
		{Key: Key{7, 6000}, attempt: 2},                    // no first attempt
		{Key: Key{7, 6000}, attempt: 1, redelivered: true}, // nor this
		{Key: Key{9, 10_001}, attempt: 1},                  // early
	} {
		l.add(c, now)
	}
	if l.Total != 7 || l.Disordered != 1 || l.Early != 1 || l.Late(0) != -time.Millisecond || l.Late(1) != 3*time.Second {
		t.Errorf("%+v", l)
	}
	if n := l.Missing([]Key{{7, 9000}, {7, 9001}}); n != 1 {
		t.Errorf("%d are missing, want 1", n)
	}
}

package remote

import (
	"context"
	"strings"

	"xtimer/cmd/xtimer/exit"
	api "xtimer/httpapi/client"
)

// timerRef is how a command line names a timer: by its id, or as APP/NAME. An
// app has no slash, a name may.
type timerRef struct{ id, app, name string }

func parseTimerRef(s string) (timerRef, error) {
	if app, name, ok := strings.Cut(s, "/"); ok && app != "" && name != "" {
		return timerRef{app: app, name: name}, nil
	}
	if s != "" && strings.Trim(s, "0123456789") == "" {
		return timerRef{id: s}, nil
	}
	return timerRef{}, exit.Usage("%q is neither a timer's id nor APP/NAME", s)
}

// Timer finds the timer that s names.
func (r *Server) Timer(ctx context.Context, s string) (*api.Timer, error) {
	ref, err := parseTimerRef(s)
	if err != nil {
		return nil, err
	}
	if ref.id != "" {
		return r.Get(ctx, ref.id)
	}
	return r.GetByName(ctx, ref.app, ref.name)
}

// TimerID is the id of the timer that s names; an id is not looked up.
func (r *Server) TimerID(ctx context.Context, s string) (string, error) {
	ref, err := parseTimerRef(s)
	if err != nil || ref.id != "" {
		return ref.id, err
	}
	t, err := r.GetByName(ctx, ref.app, ref.name)
	if err != nil {
		return "", err
	}
	return t.ID, nil
}

package remote

import (
	"context"
	"strings"

	"xtimer/cmd/xtimer/exit"
	api "xtimer/httpapi/client"
)

// timerRef names a timer: by its id, or by app and name.
type timerRef struct{ id, app, name string }

// ref reads a timer of the command line: an id, APP/NAME, or with -n a NAME. An app has
// no slash, a name may.
func (r *Server) ref(s string) (timerRef, error) {
	if r.App != "" && s != "" {
		return timerRef{app: r.App, name: strings.TrimPrefix(s, r.App+"/")}, nil
	}
	if app, name, ok := strings.Cut(s, "/"); ok && app != "" && name != "" {
		return timerRef{app: app, name: name}, nil
	}
	if s != "" && strings.Trim(s, "0123456789") == "" {
		return timerRef{id: s}, nil
	}
	return timerRef{}, exit.Usage("%q is neither the id of a timer nor APP/NAME; -n APP names the app", s)
}

func (f timerRef) String() string {
	if f.id != "" {
		return f.id
	}
	return f.app + "/" + f.name
}

// Timer returns the timer that s names.
func (r *Server) Timer(ctx context.Context, s string) (*api.Timer, error) {
	ref, err := r.ref(s)
	if err != nil {
		return nil, err
	}
	var t *api.Timer
	if ref.id != "" {
		t, err = r.Get(ctx, ref.id)
	} else {
		t, err = r.GetByName(ctx, ref.app, ref.name)
	}
	return t, found(err, "timer", ref.String())
}

// TimerID returns the id of the timer that s names; it does not look up an id.
func (r *Server) TimerID(ctx context.Context, s string) (string, error) {
	ref, err := r.ref(s)
	if err != nil || ref.id != "" {
		return ref.id, err
	}
	t, err := r.GetByName(ctx, ref.app, ref.name)
	if err != nil {
		return "", found(err, "timer", ref.String())
	}
	return t.ID, nil
}

// TimerError names the timer in an error that says that it does not exist.
func (r *Server) TimerError(err error, s string) error { return found(err, "timer", s) }

// TaskError names the task in an error that says that it does not exist.
func (r *Server) TaskError(err error, key string) error { return found(err, "task", key) }

package httpapi

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/change"
	"xtimer/engine/inspect"
	"xtimer/engine/limit"
	"xtimer/httpapi/access"
	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

// onceTTL is how long an Idempotency-Key is remembered.
const onceTTL = 24 * time.Hour

// createTimer is POST /v1/timers.
func (s *Server) createTimer(r *request) (reply, error) {
	body, err := r.body()
	if err != nil {
		return reply{}, err
	}
	d := engine.NewDefinition()
	d.App = r.ownApp()
	if err := wire.DecodeTimer(body, &d); err != nil {
		return reply{}, err
	}
	if err := cmp.Or(r.own(&d), s.callable(&d)); err != nil {
		return reply{}, wire.WithInvalid(err, "", &d)
	}
	once, err := r.once(d.App, body)
	if err != nil {
		return reply{}, err
	}
	c := s.e.Create(r.ctx, d, once)
	if c.Err != nil {
		return reply{}, c.Err
	}
	out := timerReply(c.View)
	if !c.Existed || c.Replayed {
		out.status = fasthttp.StatusCreated
	}
	out.replayed = c.Replayed
	out.location = "/v1/timers/" + c.View.ID.String()
	return out, nil
}

func timerReply(v inspect.View) reply { return reply{body: viewAnswer{v}, version: v.Version} }

// ownApp is the app of a definition that names none; "": it has to name one.
func (r *request) ownApp() string {
	if r.Grant.App == access.AllApps {
		return ""
	}
	return r.Grant.App
}

// own gives a definition without an app the token's, and refuses another.
func (r *request) own(d *engine.Definition) error {
	d.App = cmp.Or(d.App, r.ownApp())
	if !r.MayUse(d.App) {
		return wrongApp(r.Grant.App)
	}
	return nil
}

// callable refuses a definition with an address that no call would reach.
func (s *Server) callable(d *engine.Definition) error {
	if s.cfg.Forbids != nil {
		if err := s.cfg.Forbids(d.Callback.URL); err != nil {
			return engine.Invalid("callback.url", "egress_denied", "%v", err)
		}
	}
	return nil
}

// once reads the Idempotency-Key, which is scoped by app.
func (r *request) once(app string, body []byte) (*engine.Once, error) {
	key := r.http.Request.Header.Peek("Idempotency-Key")
	if key == nil {
		return nil, nil
	}
	if len(key) == 0 || len(key) > 255 || bytes.IndexFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) >= 0 {
		return nil, problem.BadField("Idempotency-Key", "bad_idempotency_key", "must be 1 to 255 printable ASCII characters")
	}
	return &engine.Once{
		App: app, Key: string(key), Body: sha256.Sum256(body),
		Expires: time.Now().Add(onceTTL).UnixMilli(),
	}, nil
}

// mine refuses another app's timer as if it were not there. A timer's app never
// changes, so that looking first is safe.
func (s *Server) mine(r *request) (engine.TimerID, error) {
	id, err := r.timerID()
	if err != nil || r.Grant.App == access.AllApps {
		return id, err
	}
	_, err = s.standing(r, id)
	return id, err
}

// standing finds a timer of an app that the request may use, and reads nothing else
// before that is known.
func (s *Server) standing(r *request, id engine.TimerID) (*engine.Timer, error) {
	t, err := s.e.Definition(r.ctx, id)
	if err == nil && !r.MayUse(t.App) {
		return nil, engine.ErrNotFound
	}
	return t, err
}

// getTimer is GET /v1/timers/{id}.
func (s *Server) getTimer(r *request) (reply, error) {
	id, err := r.timerID()
	if err != nil {
		return reply{}, err
	}
	t, err := s.standing(r, id)
	if err != nil {
		return reply{}, err
	}
	return viewReply(s.e.View(r.ctx, t))
}

// getTimerByName is GET /v1/apps/{app}/timers/{name}.
func (s *Server) getTimerByName(r *request) (reply, error) {
	return viewReply(s.byName(r))
}

func viewReply(v inspect.View, err error) (reply, error) {
	if err != nil {
		return reply{}, err
	}
	return timerReply(v), nil
}

// byName finds the timer that the path names.
func (s *Server) byName(r *request) (inspect.View, error) {
	if !r.MayUse(r.vars[0]) {
		return inspect.View{}, engine.ErrNotFound
	}
	return s.e.TimerByName(r.ctx, r.vars[0], r.vars[1])
}

// putTimer is PUT /v1/apps/{app}/timers/{name}.
func (s *Server) putTimer(r *request) (reply, error) {
	app, name := r.vars[0], r.vars[1]
	if !r.MayUse(app) {
		return reply{}, wrongApp(r.Grant.App)
	}
	body, err := r.body()
	if err != nil {
		return reply{}, err
	}
	d := engine.NewDefinition()
	d.App, d.Name = app, name
	if err := wire.DecodeTimer(body, &d); err != nil {
		return reply{}, err
	}
	if err := s.callable(&d); err != nil {
		return reply{}, wire.WithInvalid(err, "", &d)
	}
	if d.App != app {
		return reply{}, engine.Invalid("app", "mismatch", "is %s, but the path says %s", wire.Quote(d.App), wire.Quote(app))
	}
	if d.Name != name {
		return reply{}, engine.Invalid("name", "mismatch", "is %s, but the path says %s", wire.Quote(d.Name), wire.Quote(name))
	}
	match, err := ifMatch(r)
	if err != nil {
		return reply{}, err
	}
	create, err := onlyNew(r)
	if err != nil {
		return reply{}, err
	}
	dry, err := r.boolean("dry_run")
	if err != nil {
		return reply{}, err
	}
	if create && !dry {
		return s.createOnly(r, d)
	}
	var v inspect.View
	var did change.PutResult
	look := func() (inspect.View, error) {
		standing, err := s.e.TimerByName(r.ctx, app, name)
		if isFault(err, engine.FaultNotFound) {
			err = errStale
		}
		return standing, err
	}
	err = match.try(look, func(version uint32) (err error) {
		if dry {
			did, err = s.e.WouldPut(r.ctx, d, version)
		} else {
			v, did, err = s.e.Put(r.ctx, d, version)
		}
		return err
	})
	if dry && create {
		err = onlyCreated(did, err)
	}
	if err != nil {
		return reply{}, err
	}
	if dry {
		return reply{body: renderFunc(func(b []byte) []byte {
			b = wire.TextMember(append(b, '{'), "result", putNames[did])
			b = wire.BoolMember(b, "dry_run", true)
			undefined, missing := limit.Undefined(s.e.Objects(), app, d.Flow), s.missingSecrets(app, d.Callback.Headers)
			if len(undefined)+len(missing) > 0 {
				b = wire.AppendUndefined(append(wire.Member(b, "warnings"), '['), undefined)
				b = append(wire.AppendMissing(b, missing), ']')
			}
			return append(b, '}')
		})}, nil
	}
	return putReply(v, did), nil
}

// onlyCreated is the error of a dry PUT with If-None-Match: *. A timer that is there already
// needs no room.
func onlyCreated(did change.PutResult, err error) error {
	if did != change.PutCreated && (err == nil || isFault(err, engine.FaultExceeded)) {
		return errExists
	}
	return err
}

// missingSecrets are the names of the secrets in the headers of a timer that its app does not have.
func (s *Server) missingSecrets(app string, headers []engine.Header) (missing []string) {
	for _, h := range headers {
		if h.Secret == "" {
			continue
		}
		if _, ok := s.cfg.Secrets.Value(app, h.Secret); !ok {
			missing = append(missing, h.Secret)
		}
	}
	return missing
}

// createOnly is a PUT with If-None-Match: *.
func (s *Server) createOnly(r *request, d engine.Definition) (reply, error) {
	c := s.e.Create(r.ctx, d, nil)
	switch {
	case c.Existed, isFault(c.Err, engine.FaultConflict):
		return reply{}, errExists
	case c.Err != nil:
		return reply{}, c.Err
	}
	return putReply(c.View, change.PutCreated), nil
}

func putReply(v inspect.View, did change.PutResult) reply {
	out := reply{version: v.Version, location: "/v1/timers/" + v.ID.String()}
	if did == change.PutCreated {
		out.status = fasthttp.StatusCreated
	}
	out.body = renderFunc(func(b []byte) []byte {
		b = wire.TextMember(append(b, '{'), "result", putNames[did])
		return append(wire.AppendView(wire.Member(b, "timer"), &v), '}')
	})
	return out
}

var putNames = [...]string{
	change.PutCreated: "created", change.PutUpdated: "updated", change.PutUnchanged: "unchanged",
}

// patchTimer is PATCH /v1/timers/{id}: a JSON merge patch (RFC 7396) of the
// definition as it was sent, where null brings a default back.
func (s *Server) patchTimer(r *request) (reply, error) {
	id, err := s.mine(r)
	if err != nil {
		return reply{}, err
	}
	body, err := r.body()
	if err != nil {
		return reply{}, err
	}
	patch := bytes.Clone(body)
	if err := wire.CheckPatch(patch); err != nil {
		return reply{}, err
	}
	var v inspect.View
	err = s.matched(r, id, func(version uint32) (err error) {
		v, err = s.e.Replace(r.ctx, id, version, func(old engine.Definition) (engine.Definition, error) {
			d, err := wire.Patched(old, patch)
			if err == nil && d.Callback.URL != old.Callback.URL {
				err = s.callable(&d)
			}
			return d, err
		})
		return err
	})
	if err != nil {
		return reply{}, err
	}
	return timerReply(v), nil
}

// deleteTimer is DELETE /v1/timers/{id}.
func (s *Server) deleteTimer(r *request) (reply, error) {
	id, err := s.mine(r)
	if err != nil {
		return reply{}, err
	}
	return s.delete(r, func() (inspect.View, error) { return s.e.Timer(r.ctx, id) }, id)
}

// deleteTimerByName is DELETE /v1/apps/{app}/timers/{name}.
func (s *Server) deleteTimerByName(r *request) (reply, error) {
	v, err := s.byName(r)
	if err != nil {
		return reply{}, err
	}
	return s.delete(r, func() (inspect.View, error) { return s.byName(r) }, v.ID)
}

func (s *Server) delete(r *request, look func() (inspect.View, error), id engine.TimerID) (reply, error) {
	match, err := ifMatch(r)
	if err != nil {
		return reply{}, err
	}
	var did change.DeleteResult
	err = match.try(look, func(version uint32) (err error) {
		did, err = s.e.Delete(r.ctx, id, version)
		return err
	})
	if err != nil {
		return reply{}, err
	}
	return resultReply(string(did)), nil
}

func resultReply(result string) reply {
	return reply{body: renderFunc(func(b []byte) []byte {
		return append(wire.TextMember(append(b, '{'), "result", result), '}')
	})}
}

// isFault reports whether an error is a fault of that kind.
func isFault(err error, kind engine.FaultKind) bool {
	var f *engine.Fault
	return errors.As(err, &f) && f.Kind == kind
}

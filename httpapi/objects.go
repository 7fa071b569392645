package httpapi

import (
	"errors"
	"strings"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/limit"
	"xtimer/engine/object"
	"xtimer/httpapi/access"
	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

// objects is a kind of objects as the API has it: each is PUT, read and deleted under
// /v1/apps/{app}/PATH/{name}, and listed one up.
type objects struct {
	kind   string // of its keys
	thing  string // what people call one; also the member of an answer
	path   string // below the app's
	plural string // the member of a list
	// of is the key that a path names, and name appends the members of a key; nil: the app and
	// the name.
	of   func(r *request) (engine.ObjectKey, error)
	name func(b []byte, k engine.ObjectKey) []byte
	// decode reads a request's body as what is stored.
	decode func(s *Server, k engine.ObjectKey, body []byte) ([]byte, error)
	// keep is what a body that is put keeps of the object that stands then; nil: nothing.
	keep func(stands *engine.Object, body []byte) ([]byte, error)
	// same reports whether two bodies say the same; nil: if they are equal.
	same func(s *Server, k engine.ObjectKey) func(a, b []byte) bool
	// members appends the members of an answer, after those that every object has.
	members func(s *Server, b []byte, o *engine.Object) []byte
	// ofApp: an app has one at most, which stands at PATH without a name. Only an admin of all
	// apps changes one.
	ofApp bool
	// stands: they are flow keys or targets, and answers tell how they stand.
	stands bool
	// implied is what there is of one that nobody has put; nil: nothing.
	implied func(set *object.Set, k engine.ObjectKey) *engine.Object
}

// objectKinds are the kinds of objects that the API has.
var objectKinds = []*objects{secretObjects, flowObjects, quotaObjects, channelObjects, ruleObjects, muteObjects}

// objectRoutes are the routes of all kinds.
func objectRoutes() (table []route) {
	for _, k := range objectKinds {
		list := "/v1/apps/{app}/" + k.path
		one, write := list+"/{name}", access.RoleWrite
		if k.ofApp {
			one, write = list, access.RoleAdmin
		} else {
			table = append(table, route{method: fasthttp.MethodGet, path: list, role: access.RoleRead, handle: k.list, list: true, query: paging})
		}
		table = append(
			table,
			route{method: fasthttp.MethodGet, path: one, role: access.RoleRead, handle: k.get},
			route{method: fasthttp.MethodPut, path: one, role: write, handle: k.put, query: []string{"dry_run"}, preconditions: []string{fasthttp.HeaderIfMatch, fasthttp.HeaderIfNoneMatch}},
			route{method: fasthttp.MethodDelete, path: one, role: write, handle: k.delete, preconditions: []string{fasthttp.HeaderIfMatch}},
		)
	}
	return table
}

// thingOf is what the objects of a path are called, "" for a path of no objects.
func thingOf(path string) string {
	for _, k := range objectKinds {
		if at := "/v1/apps/{app}/" + k.path; strings.HasPrefix(path, at+"/") || path == at && k.ofApp {
			return k.thing
		}
	}
	return ""
}

// key is the object that a path names, which the request may read, and with write change.
// What holds for all apps only an admin of all apps changes.
func (k *objects) key(s *Server, r *request, write bool) (engine.ObjectKey, error) {
	key := engine.ObjectKey{Kind: k.kind, App: r.vars[0], Name: r.vars[1]}
	if k.of != nil {
		var err error
		if key, err = k.of(r); err != nil {
			return key, err
		}
	}
	switch {
	case !r.MayUse(key.App):
		return key, wrongApp(r.Grant.App)
	case write && k.ofApp && r.Grant.App != access.AllApps:
		return key, problem.Forbidden("the request needs an admin token for all apps")
	case write && !r.mayChange(key.App):
		return key, errHoldsForAll
	}
	return key, s.e.Ready()
}

// mayChange reports whether the request may change what holds for an app.
func (r *request) mayChange(app string) bool {
	return app != access.AllApps || r.Grant.Role >= access.RoleAdmin
}

var errHoldsForAll = problem.Forbidden("this holds for all apps: the request needs an admin token for all apps")

// put is PUT of one.
func (k *objects) put(s *Server, r *request) (reply, error) {
	key, err := k.key(s, r, true)
	if err != nil {
		return reply{}, err
	}
	body, err := r.body()
	if err != nil {
		return reply{}, err
	}
	match, errMatch := ifMatch(r)
	create, errNew := onlyNew(r)
	dry, errDry := r.boolean("dry_run")
	if err := problem.Together(errMatch, errNew, errDry); err != nil {
		return reply{}, err
	}
	w := object.Write{Key: key, When: match.ofObject(create), Dry: dry, Keep: k.keep}
	if w.Body, err = k.decode(s, key, body); err != nil {
		return reply{}, err
	}
	if k.same != nil {
		w.Same = k.same(s, key)
	}
	result, o, err := s.e.Objects().Write(r.ctx, w)
	if err != nil {
		return reply{}, err
	}
	if dry {
		return reply{body: renderFunc(func(b []byte) []byte {
			return append(wire.BoolMember(wire.TextMember(append(b, '{'), "result", string(result)), "dry_run", true), '}')
		})}, nil
	}
	g := s.gatesOf(r, k, o)
	out := reply{version: o.Version, body: renderFunc(func(b []byte) []byte {
		b = wire.TextMember(append(b, '{'), "result", string(result))
		return append(k.append(s, wire.Member(b, k.thing), o, g), '}')
	})}
	if result == object.Created {
		out.status = fasthttp.StatusCreated
	}
	return out, nil
}

// ofObject is the precondition of a write of an object.
func (p precondition) ofObject(create bool) object.Precondition {
	return func(stands *engine.Object) error {
		switch {
		case create && stands != nil:
			return &engine.Fault{Kind: engine.FaultPrecondition, Code: errExists.Code, Detail: "the object exists, and If-None-Match is *"}
		case !p.given || stands != nil && (p.any || p.has(stands.Version)):
			return nil
		}
		return &engine.Fault{Kind: engine.FaultPrecondition, Code: errStale.Code, Detail: "the current version of the object is not one that If-Match names"}
	}
}

// get is GET of one.
func (k *objects) get(s *Server, r *request) (reply, error) {
	key, err := k.key(s, r, false)
	if err != nil {
		return reply{}, err
	}
	o := k.look(s, key)
	if o == nil {
		return reply{}, engine.ErrNotFound
	}
	g := s.gatesOf(r, k, o)
	return reply{version: o.Version, body: renderFunc(func(b []byte) []byte { return k.append(s, b, o, g) })}, nil
}

// look is the object of a key, nil for none.
func (k *objects) look(s *Server, key engine.ObjectKey) *engine.Object {
	o := s.e.Objects().Get(key)
	if o == nil && k.implied != nil {
		o = k.implied(s.e.Objects(), key)
	}
	return o
}

// delete is DELETE of one.
func (k *objects) delete(s *Server, r *request) (reply, error) {
	key, err := k.key(s, r, true)
	if err != nil {
		return reply{}, err
	}
	match, err := ifMatch(r)
	if err != nil {
		return reply{}, err
	}
	when := match.ofObject(false)
	now, _ := s.e.Now()
	err = limit.Delete(r.ctx, s.e.Objects(), key, func(stands *engine.Object) error {
		if stands == nil {
			return engine.ErrNotFound
		}
		return when(stands)
	}, now)
	if err != nil {
		return reply{}, err
	}
	return resultReply("deleted"), nil
}

// list is GET of all of an app.
func (k *objects) list(s *Server, r *request) (reply, error) {
	key, err := k.key(s, r, false)
	if err != nil {
		return reply{}, err
	}
	after, limit, err := s.page(r)
	if err != nil {
		return reply{}, err
	}
	if after != "" { // its first part: a cursor of one app is none of another's list
		app, name, _ := strings.Cut(after, "\n")
		if app != key.App {
			return reply{}, errBadCursor
		}
		after = name
	}
	page := s.e.Objects().Page(k.kind, key.App, after, limit+1)
	b := buffers.Get().(*[]byte)
	*b = append(wire.Member(append((*b)[:0], '{'), k.plural), '[')
	g, next := s.gatesOf(r, k, page...), ""
	for i, o := range page {
		if i == limit || len(*b) > pageBytes {
			next = key.App + "\n" + page[i-1].Name
			break
		}
		*b = k.append(s, wire.Comma(*b), o, g)
	}
	*b = append(s.cursorMember(append(*b, ']'), r, next), '}')
	return reply{made: b}, nil
}

// append appends an object.
func (k *objects) append(s *Server, b []byte, o *engine.Object, g gates) []byte {
	b = append(b, '{')
	if k.name != nil {
		b = k.name(b, o.ObjectKey)
	} else {
		b = wire.TextMember(wire.TextMember(b, "app", o.App), "name", o.Name)
	}
	if b = g.append(k.members(s, b, o), o); o.Version == 0 {
		return append(b, '}')
	}
	b = wire.IntMember(b, "version", int64(o.Version))
	b = wire.TimeMember(b, "updated_at", o.UpdatedAt)
	if o.UpdatedBy != "" {
		b = wire.TextMember(b, "updated_by", o.UpdatedBy)
	}
	return append(b, '}')
}

// flowObjects are the limits of flow keys. A key that somebody only paused has one, too, and so has one that a pattern matches.
var flowObjects = &objects{
	kind: limit.FlowKind, thing: "flow", path: "flows", plural: "flows",
	decode: decodeFlow, keep: limit.Keep, members: (*Server).appendFlow, stands: true, implied: limit.OfPattern,
}

func decodeFlow(_ *Server, _ engine.ObjectKey, body []byte) ([]byte, error) {
	l, err := wire.DecodeLimit(body)
	if err != nil {
		return nil, err
	}
	x := limit.Object{Limit: l}
	return x.Body(), nil
}

// appendFlow appends what a flow allows.
func (s *Server) appendFlow(b []byte, o *engine.Object) []byte {
	now, _ := s.e.Now()
	x, pattern, err := limit.InForce(s.e.Objects(), o, now)
	if err != nil {
		return b
	}
	if x.Limit != nil {
		b = wire.AppendLimit(b, x.Limit)
	}
	if pattern != "" {
		b = wire.TextMember(b, "pattern", pattern)
	}
	return s.appendPause(b, &x, o)
}

// appendPause appends the members of a pause.
func (s *Server) appendPause(b []byte, x *limit.Object, o *engine.Object) []byte {
	now, _ := s.e.Now()
	if p := x.Paused(o, now); p != nil {
		b = wire.BoolMember(b, "paused", true)
		if p.Until != engine.MaxDue {
			b = wire.TimeMember(b, "paused_until", p.Until)
		}
		if p.Reason != "" {
			b = wire.TextMember(b, "reason", p.Reason)
		}
		b = wire.TimeMember(b, "paused_since", p.Since)
		if p.By != "" {
			b = wire.TextMember(b, "paused_by", p.By)
		}
	}
	return b
}

// flowRoutes are the routes that pause, and the list of what waits.
func flowRoutes() []route {
	const app, one = "/v1/apps/{app}", "/v1/apps/{app}/flows/{name}"
	return []route{
		{method: fasthttp.MethodPost, path: one + "/pause", role: access.RoleWrite, handle: flowObjects.changedBy(paused)},
		{method: fasthttp.MethodPost, path: one + "/resume", role: access.RoleWrite, handle: flowObjects.changedBy(resumed)},
		{method: fasthttp.MethodPost, path: one + "/cooldown", role: access.RoleWrite, handle: flowObjects.changedBy(cooled)},
		{method: fasthttp.MethodGet, path: one + "/waiting", role: access.RoleRead, handle: (*Server).waitingFor, list: true, query: paging},
		{method: fasthttp.MethodGet, path: app + "/pause", role: access.RoleRead, handle: (*Server).getPause},
		{method: fasthttp.MethodPost, path: app + "/pause", role: access.RoleWrite, handle: ofApp(paused)},
		{method: fasthttp.MethodPost, path: app + "/resume", role: access.RoleWrite, handle: ofApp(resumed)},
	}
}

func (k *objects) changedBy(v verb) func(*Server, *request) (reply, error) {
	return func(s *Server, r *request) (reply, error) {
		key, err := k.key(s, r, true)
		if err != nil {
			return reply{}, err
		}
		o, err := s.change(r, key, v, k.look(s, key) != nil)
		if err != nil {
			return reply{}, err
		}
		g := s.gatesOf(r, k, o)
		return reply{version: o.Version, body: renderFunc(func(b []byte) []byte { return k.append(s, b, o, g) })}, nil
	}
}

// change changes an object as it stands. implied: something is said of the key although there may be no object.
func (s *Server) change(r *request, k engine.ObjectKey, v verb, implied bool) (*engine.Object, error) {
	apply, err := v(s, r)
	if err != nil {
		return nil, err
	}
	for {
		was := s.e.Objects().Get(k)
		x, err := limit.Read(was)
		if err != nil {
			return nil, err
		}
		if err := apply(&x, was != nil || implied); err != nil {
			return nil, err
		}
		_, o, err := s.e.Objects().Write(r.ctx, object.Write{Key: k, Body: x.Body(), When: func(stands *engine.Object) error {
			if (stands == nil) != (was == nil) || stands != nil && stands.Version != was.Version {
				return errChanged
			}
			return nil
		}})
		if !errors.Is(err, errChanged) {
			return o, err
		}
	}
}

// errChanged has change look again.
var errChanged = errors.New("the object was changed meanwhile")

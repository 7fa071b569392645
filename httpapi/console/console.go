// Package console is the pages of xtimer for people: did it fire, how late, why
// not, and what fires next?
//
// The way of a page: ServeHTTP (headers, the origin of a change) → a visit (who,
// in which language) → a page's function (overview.go, timers.go …) → the API,
// asked by httpapi/client with the visitor's token → a template in pages.
// There is no way to the engine but the API: a visitor can do what the token
// can, whatever the pages show.
//
// Pages are complete without scripts, except for what moves by itself. With them, htmx
// swaps parts of the same pages in, uPlot draws, and assets/app.js does the rest.
// All assets are in the binary, and nothing is asked of another host.
package console

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"xtimer/httpapi/client"
)

// Config of a console. Zero values mean the defaults stated.
type Config struct {
	// API answers requests to /v1/….
	API http.RoundTripper
	// NoRedis: the warm tier is the memory of the process, which is always available.
	NoRedis bool
	// Cluster: the server is one of several nodes.
	Cluster bool
	Log     *slog.Logger // default slog.Default()
}

type console struct {
	cfg      Config
	log      *slog.Logger
	origin   *http.CrossOriginProtection
	mux      *http.ServeMux
	key      [32]byte // of the tokens in forms; new with each start
	sessions sessions
	works    works
}

// New builds the handler of all pages, which is an httpapi.Sessions.
func New(cfg Config) http.Handler {
	c := &console{cfg: cfg, log: cfg.Log, origin: http.NewCrossOriginProtection(), mux: http.NewServeMux()}
	if c.log == nil {
		c.log = slog.Default()
	}
	rand.Read(c.key[:])
	for pattern, page := range map[string]page{
		"GET /{$}":                   overview,
		"GET /upcoming":              upcoming,
		"GET /upcoming/hours":        forecast,
		"GET /apps":                  listApps,
		"GET /timers":                listTimers,
		"GET /timers/new":            newTimer,
		"POST /timers/new":           createTimer,
		"POST /timers/preview":       preview,
		"POST /timers/act":           actOnTimers,
		"GET /timers/{id}":           showTimer,
		"GET /timers/{id}/edit":      editTimer,
		"POST /timers/{id}/edit":     changeTimer,
		"POST /timers/{id}/{action}": actOnTimer,
		"GET /tasks":                 listTasks,
		"GET /tasks.csv":             tasksCSV,
		"GET /tasks/{key}":           showTask,
		"POST /tasks/{key}/retry":    retryTask,
		"POST /tasks/{key}/dismiss":  dismissTask,
		"GET /dead":                  listDead,
		"POST /dead/retry":           retryDead,
		"POST /dead/dismiss":         dismissDead,
		"GET /work/{id}":             showWork,
		"POST /work/{id}/stop":       stopWork,
		"GET /system":                showSystem,
		"POST /system/backup":        backUp,
		"GET /cluster":               showCluster,
		"POST /cluster":              actOnNode,
		"GET /flows":                 listFlows,
		"POST /flows":                actOnFlow,
		"GET /alerts":                showAlerts,
		"POST /alerts":               actOnAlerts,
		"GET /alerts/rule":           editRule,
		"POST /alerts/rule":          saveRule,
		"GET /alerts/channel":        editChannel,
		"POST /alerts/channel":       saveChannel,
		"GET /live":                  showLive,
		"GET /live/events":           liveEvents,
		"POST /sign-out":             signOut,
	} {
		c.mux.HandleFunc(pattern, c.serve(page, true))
	}
	c.mux.HandleFunc("GET /sign-in", c.serve(showSignIn, false))
	c.mux.HandleFunc("POST /sign-in", c.serve(signIn, false))
	c.mux.HandleFunc("POST /preferences", c.serve(prefer, false))
	c.mux.HandleFunc("/", c.serve(nothing, false))
	c.mux.HandleFunc("GET /assets/{file}", serveAsset)
	return c
}

// policy lets a page load from this server alone, run no script or style that
// stands in it, and be framed by nobody.
const policy = "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

func (c *console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if err := c.origin.Check(r); err != nil {
		http.Error(w, "a page of another origin may not change anything here", http.StatusForbidden)
		return
	}
	c.mux.ServeHTTP(w, r)
}

// patience is how long a page that only shows may take. A change takes as long as
// it takes: cut short, it might be done all the same.
const patience = 15 * time.Second

// streams are the answers that are sent while they come about.
var streams = []string{"/live/events", "/tasks.csv"}

// page answers one request.
type page func(v *visit) error

// redirect is the error of a page that sends the visitor on.
type redirect string

func (r redirect) Error() string { return "go on at " + string(r) }

// fault is an error of the request that the API has not seen.
type fault struct {
	status int
	text   string // a key of the table of messages
}

// errLooks answers who asks for a form that would lead nowhere.
var errLooks = &fault{http.StatusForbidden, "This token permits reading only."}

func (f *fault) Error() string { return f.text }

// serve makes a handler of a page; private pages want a grant of the API.
func (c *console) serve(p page, private bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := c.visit(w, r)
		ctx, cancel := context.WithCancel(v.ctx)
		defer cancel()
		if r.Method == http.MethodGet && !slices.Contains(streams, r.URL.Path) {
			ctx, cancel = context.WithTimeout(ctx, patience)
			defer cancel()
		}
		v.ctx = ctx
		err := v.admit(private)
		if err == nil {
			err = p(v)
		}
		if err != nil {
			v.fail(err)
		}
	}
}

// fail answers an error: as a page of its own.
func (v *visit) fail(err error) {
	var to redirect
	var f *fault
	var problem *client.Error
	e := failure{Status: http.StatusBadGateway, Detail: err.Error()}
	switch {
	case errors.As(err, &to):
		v.goTo(string(to))
		return
	case errors.As(err, &f):
		e.Status, e.Detail = f.status, v.T(f.text)
	case errors.As(err, &problem) && problem.Status == http.StatusUnauthorized:
		v.c.sessions.end(v.session)
		v.goTo("/sign-in")
		return
	case client.IsNotFound(err):
		e.Status, e.Detail = http.StatusNotFound, v.T("The timer or task does not exist: it was deleted, or its record was removed after the retention time.")
	case errors.As(err, &problem):
		e = failure{problem.Status, problem.Detail, problem.Fields}
	default:
		v.c.log.Error("cannot show a page", "path", v.r.URL.Path, "err", err)
	}
	v.status = e.Status
	if err := v.show("failure", v.T("The action failed"), e); err != nil {
		v.c.log.Error("cannot show an error", "err", err)
	}
}

type failure struct {
	Status int
	Detail string
	Fields []client.FieldError
}

func (v *visit) goTo(path string) {
	if v.r.Header.Get("HX-Request") != "" {
		v.w.Header().Set("HX-Redirect", path)
		return
	}
	http.Redirect(v.w, v.r, path, http.StatusSeeOther)
}

func nothing(*visit) error {
	return &fault{http.StatusNotFound, "This page does not exist."}
}

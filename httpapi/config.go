package httpapi

import (
	"io"
	"log/slog"
	"net/http"
	"time"

	"xtimer/engine/alert"
	"xtimer/engine/secret"
	"xtimer/httpapi/access"
	"xtimer/httpapi/nodes"
)

// ServerConfig of a Server. Zero values mean the defaults stated.
type ServerConfig struct {
	// Tokens that are needed; without any, everyone may do everything.
	Tokens []access.Token
	// Cluster tells of the nodes that share the cold tier, if the engine is one of several;
	// nil: it is alone.
	Cluster nodes.Cluster
	// Secrets are those of the engine's objects; nil: the server makes them, unsealed.
	Secrets *secret.Vault
	// Alerts tells people of failures; nil: nobody does.
	Alerts *alert.Alerter
	// CursorKey seals the cursors of lists, CursorKeySize bytes; nil: one of the process's
	// own, whose cursors end with it.
	CursorKey []byte
	// MaxBody and MaxBatch bound the body of a request and of a batch; default
	// 1 MiB and 8 MiB.
	MaxBody, MaxBatch int
	// MaxConns and MaxConnsPerIP bound open connections; default 65,536 and 1,024.
	MaxConns, MaxConnsPerIP int
	// ReadTimeout bounds the reading of a request; default 5 s, a batch 30 s.
	ReadTimeout time.Duration
	// IdleTimeout of a kept connection; default 60 s.
	IdleTimeout time.Duration
	// Grace is how long requests in flight may take after Serve's context
	// ended; default 10 s.
	Grace time.Duration
	// Heartbeat of an event stream; default 15 s.
	Heartbeat time.Duration
	// LocalOnly: there are no tokens, because only this machine can ask. Requests to a
	// name of the internet are then refused, and changes by web pages from any name.
	LocalOnly bool
	// Forbids says why a URL may not be called, as far as that is known before the call;
	// nil: each may.
	Forbids func(url string) error
	// BackupDir is where backups go; "": there are none.
	BackupDir string
	// CPUs is how many cores this process may use, for GET /v1/system.
	CPUs int
	// Pprof serves /debug/pprof/.
	Pprof bool
	// Version is the answer of GET /v1/version.
	Version Version
	// Settings in force, for GET /v1/system: without secrets.
	Settings []Setting
	// Console builds the handler of all paths that are not the API's, over the
	// API; may be nil. If visitors can sign in, the handler is a Sessions.
	Console func(api http.RoundTripper) http.Handler
	// Metrics writes what others count, without metadata lines; may be nil.
	Metrics func(w io.Writer)
	Log     *slog.Logger // default slog.Default()
}

// Sessions are those of the visitors who have signed in.
type Sessions interface {
	// Token is the token of the session that a Cookie header names; "": it names none.
	Token(cookies string) string
}

// Version says which build this is.
type Version struct {
	Version, Commit, Go string
}

func (c *ServerConfig) defaults() {
	def := func(v *int, to int) { *v = orElse(*v, to) }
	def(&c.MaxBody, 1<<20)
	def(&c.MaxBatch, 8<<20)
	def(&c.MaxConns, 1<<16)
	def(&c.MaxConnsPerIP, 1<<10)
	c.ReadTimeout = orElse(c.ReadTimeout, 5*time.Second)
	c.IdleTimeout = orElse(c.IdleTimeout, time.Minute)
	c.Grace = orElse(c.Grace, 10*time.Second)
	c.Heartbeat = orElse(c.Heartbeat, 15*time.Second)
	c.Log = orElse(c.Log, slog.Default())
}

func orElse[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

package httpapi

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/netip"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"
)

// Role is what a token may do; each role may do all that the ones before it may.
type Role uint8

// The roles: look; change timers and tasks; and administer the service.
const (
	RoleRead Role = iota + 1
	RoleWrite
	RoleAdmin
)

// roleOpen marks routes that want no token.
const roleOpen Role = 0

var roleNames = [...]string{"open", "read", "write", "admin"}

func (r Role) String() string { return roleNames[r] }

// ParseRole reads a role's word.
func ParseRole(s string) (r Role, ok bool) {
	for i, name := range roleNames {
		if i > 0 && name == s {
			return Role(i), true
		}
	}
	return 0, false
}

// AllApps is the app of a token that may use every app.
const AllApps = "*"

// Token lets its bearer use one app, or all of them. Either Token or SHA256,
// the hex of the token's digest, is set. Versions of timers keep the Name of the token
// that made them; "": its role and app.
type Token struct {
	App, Name     string
	Role          Role
	Token, SHA256 string
}

// grant is what a request may do.
type grant struct {
	app  string // AllApps or the one
	role Role
	name string
}

// anonymous is the name of everyone where there are no tokens.
const anonymous = "anonymous"

func (t *Token) name() string {
	switch {
	case t.Name != "":
		return t.Name
	case t.App == AllApps:
		return t.Role.String() + " token of all apps"
	}
	return t.Role.String() + " token of " + t.App
}

func (g grant) mayUse(app string) bool { return g.app == AllApps || g.app == app }

type digest [sha256.Size]byte

// keyring knows the digests of all tokens.
type keyring []struct {
	digest digest
	grant  grant
}

func newKeyring(tokens []Token) (keyring, error) {
	ring := make(keyring, len(tokens))
	seen := make(map[digest]bool, len(tokens))
	for i, t := range tokens {
		d := digest(sha256.Sum256([]byte(t.Token)))
		if t.SHA256 != "" {
			b, err := hex.DecodeString(t.SHA256)
			if err != nil || len(b) != len(d) || t.Token != "" {
				return nil, fmt.Errorf("token %d of app %q: sha256 must be 64 hex digits, and must be set without token", i+1, t.App)
			}
			d = digest(b)
		}
		switch {
		case t.Token == "" && t.SHA256 == "":
			return nil, fmt.Errorf("token %d of app %q is empty", i+1, t.App)
		case t.App == "":
			return nil, fmt.Errorf("token %d has no app; %q means all apps", i+1, AllApps)
		case t.Role < RoleRead || t.Role > RoleAdmin:
			return nil, fmt.Errorf("token %d of app %q has no role", i+1, t.App)
		case seen[d]:
			return nil, fmt.Errorf("token %d of app %q is given twice: a token belongs to one app and has one role", i+1, t.App)
		}
		seen[d] = true
		ring[i].digest, ring[i].grant = d, grant{t.App, t.Role, t.name()}
	}
	return ring, nil
}

// find compares with every token, in the same time whichever it is; -1 is none.
func (k keyring) find(token []byte) (place int) {
	d := sha256.Sum256(token)
	place = -1
	for i := range k {
		if subtle.ConstantTimeCompare(k[i].digest[:], d[:]) == 1 {
			place = i
		}
	}
	return place
}

var bearer = []byte("bearer ")

// authorize finds out what a request may do, and refuses one that may not do
// what its route needs. Without any token set, everyone may do everything.
func (s *Server) authorize(ctx *fasthttp.RequestCtx, need Role) (grant, error) {
	if len(s.keys) == 0 || need == roleOpen {
		return grant{AllApps, RoleAdmin, anonymous}, nil
	}
	h := ctx.Request.Header.Peek(fasthttp.HeaderAuthorization)
	if len(h) <= len(bearer) || !bytes.EqualFold(h[:len(bearer)], bearer) {
		return grant{}, &problem{
			status: fasthttp.StatusUnauthorized, code: "no_token",
			detail: "the request needs a token: Authorization: Bearer TOKEN",
		}
	}
	place := s.keys.find(bytes.TrimSpace(h[len(bearer):]))
	c, _ := ctx.Conn().(*visitor)
	if c == nil || place < 0 || c.token != place+1 {
		if err := s.guesses.judge(ctx.RemoteAddr(), place); err != nil {
			return grant{}, err
		}
		if c != nil {
			c.token = place + 1
		}
	}
	g := s.keys[place].grant
	if g.role < need {
		return grant{}, forbidden("the token has the role " + g.role.String() + "; the request needs " + need.String())
	}
	return g, nil
}

func forbidden(detail string) *problem {
	return &problem{status: fasthttp.StatusForbidden, code: "forbidden", detail: detail}
}

// sameOrigin refuses changes that a foreign web page asks a browser for: the
// service is often open on loopback, where every page could reach it. It is
// the rule of http.CrossOriginProtection.
func sameOrigin(ctx *fasthttp.RequestCtx) error {
	h := &ctx.Request.Header
	if ctx.IsGet() || ctx.IsHead() || ctx.IsOptions() {
		return nil
	}
	switch string(h.Peek("Sec-Fetch-Site")) {
	case "same-origin", "none":
		return nil
	case "":
		origin := h.Peek(fasthttp.HeaderOrigin)
		if len(origin) == 0 {
			return nil
		}
		if _, host, ok := bytes.Cut(origin, []byte("://")); ok && bytes.Equal(host, h.Host()) {
			return nil
		}
	}
	return &problem{
		status: fasthttp.StatusForbidden, code: "cross_origin", detail: "a page of another origin must not change anything on this server",
	}
}

// rebound reports whether a request may be one of a web page at a name. Whoever owns the
// name can point it at loopback once the page is loaded; then the page is of the same
// origin as we are. Nobody can do that with an address, or with localhost. A page that
// reads sends no Origin, but as Host its name; what wants no token anyone may read.
func (s *Server) rebound(ctx *fasthttp.RequestCtx) bool {
	h := &ctx.Request.Header
	// A name without a dot is of this network's.
	if host := string(h.Host()); strings.Contains(host, ".") && ownable(host) && !s.open(ctx) {
		return true
	}
	if ctx.IsGet() || ctx.IsHead() || ctx.IsOptions() {
		return false
	}
	origin := string(h.Peek(fasthttp.HeaderOrigin))
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || ownable(u.Host)
}

// ownable reports whether a host, with a port or without, is neither localhost nor an address.
func ownable(host string) bool {
	name := strings.ToLower((&url.URL{Host: host}).Hostname())
	_, err := netip.ParseAddr(name)
	return err != nil && name != "localhost" && !strings.HasSuffix(name, ".localhost")
}

// open reports whether a request is for what wants no token, such as a probe; a page of
// the console is not.
func (s *Server) open(ctx *fasthttp.RequestCtx) bool {
	uri := unsafeString(ctx.Request.Header.RequestURI())
	path, _, _ := strings.Cut(uri, "?")
	rt, _, err := s.root.find(unsafeString(ctx.Method()), path)
	return err == nil && rt.role == roleOpen && ofAPI(uri)
}

var errRebound = &problem{
	status: fasthttp.StatusForbidden, code: "cross_origin",
	detail: "without tokens the server accepts no request with an internet host name, and no change from a page outside localhost and IP addresses, because anyone can point a domain at it: " +
		"use localhost or the address, set a token, or pass --insecure",
}

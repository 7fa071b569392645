// Package access decides who may ask for what, and how many may ask at once.
package access

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"xtimer/httpapi/conn"
	"xtimer/httpapi/problem"
)

// Guard knows the tokens, and who tries unknown ones.
type Guard struct {
	keys    keyring
	guesses *guesses
}

// NewGuard knows tokens; without any, everyone may do everything.
func NewGuard(tokens []Token) (*Guard, error) {
	keys, err := newKeyring(tokens)
	return &Guard{keys: keys, guesses: newGuesses()}, err
}

// Open reports whether there are no tokens.
func (g *Guard) Open() bool { return len(g.keys) == 0 }

// Apps are those of the tokens.
func (g *Guard) Apps() (apps []string) {
	for i := range g.keys {
		apps = append(apps, g.keys[i].grant.App)
	}
	return apps
}

// find is the place in the keyring of the token of a request, -1 when that is unknown; ok:
// there is one.
func (g *Guard) find(h *fasthttp.RequestHeader) (place int, ok bool) {
	auth := h.Peek(fasthttp.HeaderAuthorization)
	if len(auth) <= len(bearer) || !bytes.EqualFold(auth[:len(bearer)], bearer) {
		return -1, false
	}
	return g.keys.find(bytes.TrimSpace(auth[len(bearer):])), true
}

var bearer = []byte("bearer ")

// Authorize finds out what a request may do, and refuses one that may not do
// what its route needs. Without any token set, everyone may do everything.
func (g *Guard) Authorize(ctx *fasthttp.RequestCtx, need Role) (Grant, error) {
	if g.Open() || need == RoleOpen {
		return Grant{AllApps, RoleAdmin, anonymous}, nil
	}
	place, err := g.judge(ctx)
	if err != nil {
		return Grant{}, err
	}
	may := g.keys[place].grant
	if may.Role < need {
		return Grant{}, problem.Forbidden("the token has the role " + may.Role.String() + "; the request needs " + need.String())
	}
	return may, nil
}

// judge is the place in the keyring of the token of a request. A token that was not good in
// the last request of the connection is one of the guesses of the address.
func (g *Guard) judge(ctx *fasthttp.RequestCtx) (place int, err error) {
	place, ok := g.find(&ctx.Request.Header)
	if !ok {
		return -1, errNoToken
	}
	c := conn.Of(ctx)
	if c != nil && place >= 0 && c.Token == place+1 {
		return place, nil
	}
	if err := g.guesses.judge(ctx.RemoteAddr(), place); err != nil {
		return -1, err
	}
	if c != nil {
		c.Token = place + 1
	}
	return place, nil
}

// Sender is the app of the token of a head that fasthttp has just read, see conn.Context.
// The token is judged as that of a whole request: whether a body is awaited would tell a
// good token from an unknown one, as often as somebody asks.
func (g *Guard) Sender(h *fasthttp.RequestHeader) (app string, err error) {
	if g.Open() {
		return AllApps, nil
	}
	place, err := g.judge(conn.Context(h))
	if err != nil {
		return "", err
	}
	return g.keys[place].grant.App, nil
}

// AppOf is the app of the token of a session; "" is the token of a visitor without a session.
func (g *Guard) AppOf(token string) (app string, err error) {
	if g.Open() {
		return AllApps, nil
	}
	place := g.keys.find(bytes.TrimSpace([]byte(token)))
	if place < 0 {
		return "", errNoToken
	}
	return g.keys[place].grant.App, nil
}

var errNoToken = &problem.Problem{
	Status: fasthttp.StatusUnauthorized, Code: "no_token", Detail: "the request needs a token: Authorization: Bearer TOKEN",
}

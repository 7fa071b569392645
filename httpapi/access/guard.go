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
	place, ok := g.find(&ctx.Request.Header)
	if !ok {
		return Grant{}, &problem.Problem{
			Status: fasthttp.StatusUnauthorized, Code: "no_token",
			Detail: "the request needs a token: Authorization: Bearer TOKEN",
		}
	}
	c := conn.Of(ctx)
	if c == nil || place < 0 || c.Token != place+1 {
		if err := g.guesses.judge(ctx.RemoteAddr(), place); err != nil {
			return Grant{}, err
		}
		if c != nil {
			c.Token = place + 1
		}
	}
	may := g.keys[place].grant
	if may.Role < need {
		return Grant{}, problem.Forbidden("the token has the role " + may.Role.String() + "; the request needs " + need.String())
	}
	return may, nil
}

// Sender is the app of the token of a head; ErrNoSender: it has none that is known.
func (g *Guard) Sender(h *fasthttp.RequestHeader) (app string, err error) {
	if g.Open() {
		return AllApps, nil
	}
	place, _ := g.find(h)
	if place < 0 {
		return "", ErrNoSender
	}
	return g.keys[place].grant.App, nil
}

// ErrNoSender is of a head without a token that is known.
var ErrNoSender = &problem.Problem{
	Status: fasthttp.StatusUnauthorized, Code: "no_token", Detail: "this needs a token: Authorization: Bearer TOKEN",
}

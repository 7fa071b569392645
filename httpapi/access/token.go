package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
)

// Role is what a token may do; each role may do all that the ones before it may.
type Role uint8

// The roles: look; change timers and tasks; and administer the service.
const (
	RoleRead Role = iota + 1
	RoleWrite
	RoleAdmin
)

// RoleOpen marks routes that want no token.
const RoleOpen Role = 0

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

// Grant is what a request may do.
type Grant struct {
	App  string // AllApps or the one
	Role Role
	Name string
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

// MayUse reports whether timers of an app may be asked for.
func (g Grant) MayUse(app string) bool { return g.App == AllApps || g.App == app }

type digest [sha256.Size]byte

// keyring knows the digests of all tokens.
type keyring []struct {
	digest digest
	grant  Grant
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
		ring[i].digest, ring[i].grant = d, Grant{t.App, t.Role, t.name()}
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

package nodes

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"xtimer/httpapi/access"
)

// Header is the header of a request that a node makes for a client: who the client is, the
// digest of the body, the time, and the signature of these and of the request.
const Header = "X-Xtimer-Node"

// PartHeader says which part of a request the node is to do, and in its answer which part it
// has done.
const PartHeader = "X-Xtimer-Part"

// signed are the headers of a client's request that change what it means. A node passes
// them on, and signs them.
var signed = [...]string{"If-Match", "If-None-Match", "Idempotency-Key", "Content-Type", "Content-Encoding", "Last-Event-Id", PartHeader}

// Request is what one node asks another.
type Request struct {
	Method, Target string              // the target is a path with its query, as it was sent
	Header         map[string][]string // what there is of the signed headers; the first value of each counts, so a list is in one
	Body           []byte
	For            access.Grant // of the client that it is made for
}

// Keep puts into the request's headers what get knows of those that are signed. An empty
// Content-Type is none: to fasthttp both are the same.
func (r *Request) Keep(get func(name string) (value []byte)) {
	r.Header = make(map[string][]string, len(signed)+1)
	for _, name := range signed {
		if v := get(name); v != nil && (len(v) > 0 || name != "Content-Type") {
			r.Header[name] = []string{string(v)}
		}
	}
}

// tolerance is by how much the clocks of two nodes may differ, and for how long a
// signature is good.
const tolerance = 30 * time.Second

// Sign returns the value of Header for a request.
func (r *Request) Sign(secret []byte, now time.Time) string {
	body := sha256.Sum256(r.Body)
	claim := url.Values{
		"at": {strconv.FormatInt(now.UnixMilli(), 10)}, "body": {hex.EncodeToString(body[:])},
		"app": {r.For.App}, "role": {r.For.Role.String()}, "name": {r.For.Name},
	}.Encode()
	return claim + "&mac=" + hex.EncodeToString(r.mac(secret, claim))
}

// mac signs a claim about the request.
func (r *Request) mac(secret []byte, claim string) []byte {
	h := hmac.New(sha256.New, secret)
	write := func(s string) {
		_, _ = io.WriteString(h, strconv.Itoa(len(s)))
		_, _ = io.WriteString(h, ":"+s)
	}
	write("xtimer request of a node, 1")
	write(claim)
	write(r.Method)
	write(r.Target)
	for _, name := range signed {
		v := r.Header[name]
		write(strconv.Itoa(min(len(v), 1)))
		if len(v) > 0 {
			write(v[0])
		}
	}
	return h.Sum(nil)
}

// Errors of a signature.
var (
	errBadSignature = errors.New("the signature of the node is wrong")
	errBadTime      = errors.New("the time of the node's signature is more than 30 s from this node's clock")
	errBadBody      = errors.New("the body is not the one that the node has signed")
)

// Verify checks the value of Header without the body, and returns for whom the request is
// made; CheckBody checks the body.
func (r *Request) Verify(value string, secret []byte, now time.Time) (access.Grant, error) {
	claim, mac, ok := strings.Cut(value, "&mac=")
	sent, err := hex.DecodeString(mac)
	if !ok || err != nil || len(secret) != SecretSize || !hmac.Equal(sent, r.mac(secret, claim)) {
		return access.Grant{}, errBadSignature
	}
	of, err := url.ParseQuery(claim)
	if err != nil {
		return access.Grant{}, errBadSignature
	}
	at, err := strconv.ParseInt(of.Get("at"), 10, 64)
	if d := now.Sub(time.UnixMilli(at)); err != nil || d > tolerance || d < -tolerance {
		return access.Grant{}, errBadTime
	}
	role, ok := access.ParseRole(of.Get("role"))
	if !ok {
		return access.Grant{}, errBadSignature
	}
	return access.Grant{App: of.Get("app"), Role: role, Name: of.Get("name")}, nil
}

// CheckBody checks the body against a value of Header that was verified.
func (r *Request) CheckBody(value string) error {
	of, err := url.ParseQuery(value)
	body := sha256.Sum256(r.Body)
	if err != nil || of.Get("body") != hex.EncodeToString(body[:]) {
		return errBadBody
	}
	return nil
}

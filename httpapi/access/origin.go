package access

import (
	"bytes"
	"net/netip"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	"xtimer/httpapi/problem"
)

// SameOrigin refuses changes that a foreign web page asks a browser for: the
// service is often open on loopback, where every page could reach it. It is
// the rule of http.CrossOriginProtection.
func SameOrigin(ctx *fasthttp.RequestCtx) error {
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
	return &problem.Problem{
		Status: fasthttp.StatusForbidden, Code: "cross_origin", Detail: "a page of another origin must not change anything on this server",
	}
}

// Rebound reports whether a request may be one of a web page at a name. Whoever owns the
// name can point it at loopback once the page is loaded; then the page is of the same
// origin as we are. Nobody can do that with an address, or with localhost. A page that
// reads sends no Origin, but as Host its name; what wants no token, which open reports,
// anyone may read.
func Rebound(ctx *fasthttp.RequestCtx, open func(*fasthttp.RequestCtx) bool) bool {
	h := &ctx.Request.Header
	// A name without a dot is of this network's.
	if host := string(h.Host()); strings.Contains(host, ".") && ownable(host) && !open(ctx) {
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

// ErrRebound answers a request that Rebound reports.
var ErrRebound = &problem.Problem{
	Status: fasthttp.StatusForbidden, Code: "cross_origin",
	Detail: "without tokens the server accepts no request with an internet host name, and no change from a page outside localhost and IP addresses, because anyone can point a domain at it: " +
		"use localhost or the address, set a token, or pass --insecure",
}

package flow

import (
	"net"
	"net/netip"
	"strings"
)

// TargetOf is the Key of OfTarget of a URL, or of the scheme://host:port of one: in lower
// case, with the port. What is no URL stays as it is.
func TargetOf(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	host, port := rest[strings.LastIndexByte(rest, '@')+1:], ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host, port = host[:i], host[i+1:]
	}
	return Target(scheme, host, port)
}

// Target is the Key of OfTarget of a scheme, a host and a port, "" for that of the scheme.
func Target(scheme, host, port string) string {
	scheme, host = strings.ToLower(scheme), strings.ToLower(strings.Trim(host, "[]"))
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.String()
	}
	if port = strings.TrimLeft(port, "0"); port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

package callback

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"xtimer/engine"
)

// Egress defines the addresses that may be called. The check uses the dialled
// address, after DNS, for every connection.
//
// Independently of Egress, some addresses are never called: link-local and unspecified
// addresses, multicast and broadcast, cloud metadata services, this process's own
// listeners, and IPv6 addresses that contain one of these (IPv4-mapped,
// IPv4-translated, NAT64, 6to4, Teredo). For other addresses, Allow is checked first,
// then Deny and PublicOnly, so Allow makes exceptions. To allow only some networks,
// also deny 0.0.0.0/0 and ::/0.
type Egress struct {
	Allow, Deny []netip.Prefix
	// PublicOnly refuses all that is not a public address: loopback, private,
	// shared and reserved networks.
	PublicOnly bool
	// OwnListeners are the addresses that this process listens on: their
	// ports are refused on every address of this machine.
	OwnListeners []netip.AddrPort
}

type egress struct {
	rules Egress

	mu  sync.Mutex
	own []netip.AddrPort
}

func newEgress(rules Egress) *egress {
	e := &egress{rules: rules, own: slices.Clone(rules.OwnListeners)}
	e.rules.Allow = unmapped(rules.Allow)
	e.rules.Deny = unmapped(rules.Deny)
	return e
}

func (e *egress) addOwn(a netip.AddrPort) {
	e.mu.Lock()
	e.own = append(e.own, a)
	e.mu.Unlock()
}

// deniedError is an address that may not be called.
type deniedError struct {
	addr netip.AddrPort
	why  string
}

func (e *deniedError) Error() string { return fmt.Sprintf("%s may not be called: %s", e.addr, e.why) }

// check judges an address about to be dialled.
func (e *egress) check(address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return &deniedError{why: fmt.Sprintf("%q is not an address", address)}
	}
	addr := ap.Addr().Unmap().WithZone("")
	forms := []netip.Addr{addr}
	if v4, ok := carried(addr); ok {
		forms = append(forms, v4)
	}
	in := func(list []netip.Prefix) bool {
		return slices.ContainsFunc(forms, func(a netip.Addr) bool { return contains(list, a) })
	}
	deny := func(why string) error { return &deniedError{ap, why} }
	switch {
	case in(never):
		return deny("the address is link-local, of a metadata service, multicast or unspecified")
	case e.isOwn(forms, ap.Port()):
		return deny("the address is a listener of this server")
	case contains(e.rules.Allow, addr):
		return nil
	case in(e.rules.Deny):
		return deny("the address is in a denied network")
	case e.rules.PublicOnly && slices.ContainsFunc(forms, func(a netip.Addr) bool { return !isPublic(a) }):
		return deny("the address is not public")
	}
	return nil
}

// Forbids says why a URL whose host is an address may not be called; nil when it may, and
// for a host that is a name, whose addresses are checked at each call.
func (c *Caller) Forbids(target string) error {
	_, host, _ := strings.Cut(engine.TargetOf(target), "://")
	if host == "" || host[0] != '[' && (host[0] < '0' || host[0] > '9') {
		return nil
	}
	port := ":80"
	if strings.HasPrefix(target, "https:") {
		port = ":443"
	}
	ap, err := netip.ParseAddrPort(host)
	if err != nil {
		ap, err = netip.ParseAddrPort(host + port)
	}
	if err != nil {
		return nil // a name that begins with a digit, or what the call will refuse
	}
	return c.egress.check(ap.String())
}

// Allowed returns an error for an address (IP:PORT) that may not be dialled.
func (c *Caller) Allowed(address string) error { return c.egress.check(address) }

// isOwn reports whether one of an address's forms is this machine's, with a port
// that is listened on. The machine's addresses are looked up each time, for
// they change, and the question is rare: only for that port.
func (e *egress) isOwn(forms []netip.Addr, port uint16) bool {
	e.mu.Lock()
	i := slices.IndexFunc(e.own, func(o netip.AddrPort) bool { return o.Port() == port })
	var listed []netip.Addr
	for _, o := range e.own {
		listed = append(listed, o.Addr().Unmap())
	}
	e.mu.Unlock()
	if i < 0 {
		return false
	}
	local, err := net.InterfaceAddrs()
	if err != nil {
		return true // it may be
	}
	return slices.ContainsFunc(forms, func(a netip.Addr) bool {
		return a.IsLoopback() || slices.Contains(listed, a) ||
			slices.ContainsFunc(local, func(l net.Addr) bool {
				n, ok := l.(*net.IPNet)
				if !ok {
					return false
				}
				la, ok := netip.AddrFromSlice(n.IP)
				return ok && la.Unmap() == a
			})
	})
}

// carried is the IPv4 address that an IPv6 address of a transition scheme
// leads to.
func carried(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return a, false
	}
	b := a.As16()
	v4 := func(i int, mask byte) (netip.Addr, bool) {
		return netip.AddrFrom4([4]byte{b[i] ^ mask, b[i+1] ^ mask, b[i+2] ^ mask, b[i+3] ^ mask}), true
	}
	switch {
	case contains(nat64, a):
		return v4(12, 0)
	case sixToFour.Contains(a):
		return v4(2, 0)
	case teredo.Contains(a):
		return v4(12, 0xff)
	case translated.Contains(a):
		return v4(12, 0)
	case compatible.Contains(a) && a != netip.IPv6Unspecified() && a != netip.IPv6Loopback():
		return v4(12, 0)
	}
	return a, false
}

// isPublic reports whether an address is one of the open internet. The form that
// an IPv6 address of a transition scheme carries is judged besides.
func isPublic(a netip.Addr) bool {
	if a.Is6() {
		return (global6.Contains(a) || wellKnownNAT64.Contains(a)) && !contains(reserved, a)
	}
	return !contains(reserved, a)
}

func contains(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// unmapped writes networks of IPv4-mapped addresses as the IPv4 ones they are.
func unmapped(list []netip.Prefix) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(list))
	for _, p := range list {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		out = append(out, p.Masked())
	}
	return out
}

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(list))
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

var (
	wellKnownNAT64 = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour      = netip.MustParsePrefix("2002::/16")
	teredo         = netip.MustParsePrefix("2001::/32")
	compatible     = netip.MustParsePrefix("::/96")
	translated     = netip.MustParsePrefix("::ffff:0:0:0/96") // SIIT
	global6        = netip.MustParsePrefix("2000::/3")
	nat64          = append(prefixes("64:ff9b:1::/48"), wellKnownNAT64)

	// never may be called.
	never = prefixes(
		"0.0.0.0/8", "::/128", // unspecified; Linux takes it for itself
		"169.254.0.0/16", "fe80::/10", // link-local, with most metadata services
		"100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", // metadata: Alibaba, Azure, Oracle
		"fd00:ec2::/32", "fd20:ce::254/128", // metadata: Amazon, Google
		"224.0.0.0/4", "ff00::/8", // multicast
		"255.255.255.255/32", // broadcast
	)

	// reserved is what IANA lists as not globally reachable, beyond never.
	reserved = prefixes(
		"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10",
		"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"2001::/23", "2001:db8::/32", "3fff::/20",
	)
)

package access

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/httpapi/problem"
)

// guesses slows down whoever tries tokens. After freeGuesses unknown tokens from an
// address, it waits after each one: 100 ms, 200 ms … 1 s. Until that is over no token is
// looked at that was not good from this address before, so that an answer tells nothing
// of it; those that were, as of others behind the same proxy, go on undisturbed.
type guesses struct {
	mu   sync.Mutex
	from map[netip.Prefix]*guesser // guarded by mu, at most mostAddresses
	good map[goodToken]struct{}    // guarded by mu, at most mostAddresses
	now  func() time.Time
}

// guesser is an address from which unknown tokens came.
type guesser struct {
	failures    int
	last, until time.Time // when it failed last, and until when it waits
}

// goodToken is a token, by its place in the keyring, that was good from an address.
type goodToken struct {
	from  netip.Prefix
	token int
}

const (
	freeGuesses   = 10
	firstWait     = 100 * time.Millisecond
	longestWait   = time.Second
	guessesKept   = 10 * time.Minute // after the last failure
	mostAddresses = 10_000
)

func newGuesses() *guesses {
	return &guesses{from: make(map[netip.Prefix]*guesser), good: make(map[goodToken]struct{}), now: time.Now}
}

var (
	errUnknownToken = &problem.Problem{
		Status: fasthttp.StatusUnauthorized, Code: "unknown_token", Detail: "the token is unknown",
	}
	errGuessing = &problem.Problem{
		Status: fasthttp.StatusTooManyRequests, Code: "too_many_guesses", Retry: 1,
		Detail: "too many unknown tokens came from this address: the server checks no further tokens from it for a second",
	}
)

// judge takes the place in the keyring of a token that came from an address, or -1.
func (g *guesses) judge(addr net.Addr, token int) error {
	from, ok := prefixOf(addr)
	if !ok {
		if token < 0 {
			return errUnknownToken
		}
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	key := goodToken{from, token}
	if _, ok := g.good[key]; ok {
		return nil
	}
	now, x := g.now(), g.from[from]
	if x != nil && now.Before(x.until) {
		return errGuessing
	}
	if token >= 0 {
		if len(g.good) >= mostAddresses {
			clear(g.good) // each comes back with its next request
		}
		g.good[key] = struct{}{}
		return nil
	}
	if x == nil || now.Sub(x.last) > guessesKept {
		g.makeRoom()
		x = &guesser{}
		g.from[from] = x
	}
	x.last = now
	if x.failures++; x.failures >= freeGuesses {
		x.until = now.Add(min(firstWait<<min(x.failures-freeGuesses, 10), longestWait))
	}
	return errUnknownToken
}

// makeRoom forgets any address when there are too many.
func (g *guesses) makeRoom() {
	for from := range g.from {
		if len(g.from) < mostAddresses {
			return
		}
		delete(g.from, from)
	}
}

// prefixOf is the address, or of IPv6 the network that one customer has. What is no
// address of a network, as in tests, is not ok.
func prefixOf(addr net.Addr) (p netip.Prefix, ok bool) {
	a, ok := addr.(*net.TCPAddr)
	if !ok {
		return p, false
	}
	ip := a.AddrPort().Addr().Unmap().WithZone("")
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	p, err := ip.Prefix(bits)
	return p, err == nil
}

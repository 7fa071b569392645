package access

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/httpapi/problem"
)

func addrOf(s string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }

// From an address one unknown token a second is looked at, after the first ten; whoever
// had a good one there before is not disturbed, and neither are other addresses.
func TestGuessesAreSlow(t *testing.T) {
	g := newGuesses()
	now := time.Now()
	g.now = func() time.Time { return now }
	from, other := addrOf("192.0.2.1:1000"), addrOf("192.0.2.2:1000")
	if err := g.judge(from, 1); err != nil {
		t.Fatal(err)
	}
	looked := 0
	const seconds = 100
	for range seconds * 100 {
		if g.judge(from, -1) == errUnknownToken {
			looked++
		}
		now = now.Add(10 * time.Millisecond)
	}
	if looked > seconds+freeGuesses+5 || looked < seconds-5 {
		t.Errorf("%d guesses in %d s", looked, seconds)
	}
	if g.judge(from, -1); g.judge(from, 0) != errGuessing || g.judge(from, -1) != errGuessing {
		t.Error("a token that was not good from there before is looked at")
	}
	if err := errors.Join(g.judge(from, 1), g.judge(other, 0)); err != nil {
		t.Error(err)
	}
	now = now.Add(longestWait)
	if err := g.judge(from, 0); err != nil {
		t.Error(err)
	}
	now = now.Add(guessesKept + time.Second)
	for range 2 {
		if g.judge(from, -1) != errUnknownToken {
			t.Error("a failure of long ago counts")
		}
	}
	for i := range 3 * mostAddresses {
		a := addrOf(fmt.Sprintf("[2001:db8:%x:%x::1]:1", i>>16, i&0xffff))
		g.judge(a, -1)
		g.judge(a, i%5)
	}
	if len(g.from) > mostAddresses || len(g.good) > mostAddresses {
		t.Errorf("%d and %d addresses are kept", len(g.from), len(g.good))
	}
	a, _ := prefixOf(addrOf("[2001:db8::1]:1"))
	b, _ := prefixOf(addrOf("[2001:db8::ffff:1]:2"))
	if a != b {
		t.Error("two addresses of one network have guesses of their own")
	}
}

// TestGuessing tries tokens in requests from one address, each on a connection of its own.
func TestGuessing(t *testing.T) {
	g, err := NewGuard([]Token{{App: "a", Role: RoleRead, Token: "a-read"}, {App: "b", Role: RoleAdmin, Token: "b-admin"}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	g.guesses.now = func() time.Time { return now }
	ask := func(token string) *problem.Problem {
		var ctx fasthttp.RequestCtx
		ctx.Init(&fasthttp.Request{}, addrOf("192.0.2.1:1000"), nil)
		ctx.Request.Header.Set("Authorization", "Bearer "+token)
		if _, err := g.Authorize(&ctx, RoleRead); err != nil {
			return problem.Of(err)
		}
		return &problem.Problem{Status: 200}
	}
	if got := ask("a-read"); got.Status != 200 {
		t.Fatal(got)
	}
	for i := range 12 {
		want := 401
		if i >= freeGuesses {
			want = 429
		}
		if got := ask(fmt.Sprint("guess", i)); got.Status != want || want == 429 && got.Retry != 1 {
			t.Errorf("guess %d: %d, %v", i, got.Status, got)
		}
	}
	if got := ask("b-admin"); got.Status != 429 {
		t.Errorf("a token that is new here: %d", got.Status)
	}
	if got := ask("a-read"); got.Status != 200 {
		t.Errorf("a token that was here before: %d", got.Status)
	}
}

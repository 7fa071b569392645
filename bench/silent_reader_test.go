package bench

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// bearer adds a token to requests that have none.
type bearer struct {
	http.RoundTripper
	token string
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.RoundTripper.RoundTrip(r)
}

// TestSilentReaders has 64 connections with a read token ask for the largest page that
// there is, former versions of a timer with a big body, and read nothing of it, in a
// control group of 512 MiB: the process lives, and the lateness of another app's calls
// at p99 is at most four times what it was, or 20 ms.
func TestSilentReaders(t *testing.T) {
	const readers, admin, reader = 64, "trial-admin-0123456789", "trial-reader-0123456789"
	versions, length := byForm(t, 20, 100), byForm(t, 5*time.Second, time.Minute)
	t.Setenv("XTIMER_TOKENS", "*:admin:"+admin+",big:read:"+reader)
	defer func(was http.RoundTripper) { client.Transport = was }(client.Transport)
	client.Transport = bearer{client.Transport, admin}
	limitMemory(t, 512<<20)
	p, own := startProcess(t), startPulse()

	var put struct{ Timer struct{ ID string } }
	for i := range versions {
		body := fmt.Sprintf(`{"schedule":{"delay":"24h"},"callback":{"url":"http://127.0.0.1:1/","body_text":"%d%s"}}`, i, strings.Repeat(`\u0001`, 170_000)) // 1 MB as JSON
		r, err := http.NewRequest("PUT", p.url("/v1/apps/big/timers/large"), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		err = json.NewDecoder(answer.Body).Decode(&put)
		answer.Body.Close()
		if err != nil || answer.StatusCode/100 != 2 {
			t.Fatalf("version %d: status %d, %v", i, answer.StatusCode, err)
		}
	}
	good := traffic{app: "good", target: listen(t, 0), rate: 100}
	good.create(t, p, 500*time.Millisecond)
	p.sit(2 * time.Second)
	alone := p.p99(good.target, byForm(t, 3*time.Second, 20*time.Second))

	for range readers {
		c, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET /v1/timers/%s/versions?limit=100 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", put.Timer.ID, reader)
	}
	late := p.p99(good.target, length)
	t.Logf("%d MiB resident", p.rss()>>20)
	onTime(t, "another app", late, max(4*alone, 20*time.Millisecond), own.end())
}

package console

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"testing"
)

// breakable is the way to a node, which can be closed and opened again.
type breakable struct {
	t      *testing.T
	addr   string
	to     http.Handler
	server *http.Server
}

func (b *breakable) open() {
	b.t.Helper()
	var ln net.Listener
	var err error
	if ln, err = net.Listen("tcp", b.addr); err != nil {
		b.t.Fatal(err)
	}
	b.addr = ln.Addr().String()
	b.server = &http.Server{Handler: b.to}
	go func(s *http.Server) { _ = s.Serve(ln) }(b.server)
}

func (b *breakable) close() { _ = b.server.Close() }

// TestOutage: pages say that their server is gone, and since when; they recover
// without a person when it is back.
func TestOutage(t *testing.T) {
	n := serve(t)
	direct := mustURL(n.url)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(direct) }}
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) {
		if !errors.Is(err, context.Canceled) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, err.Error())
		}
	}
	way := &breakable{t: t, addr: "127.0.0.1:0", to: proxy}
	way.open()
	defer func() { way.close() }()
	n.url = "http://" + way.addr

	b := open(t, n)
	for _, path := range []string{"/", "/timers"} {
		b.visit(t, path)
		b.wait(t, `document.getElementById("outage").hidden && !document.documentElement.classList.contains("stale")`)
		way.close()
		b.wait(t, `!document.getElementById("outage").hidden && / \d\d:\d\d:\d\d UTC/.test(document.getElementById("outage").innerText) && document.documentElement.classList.contains("stale")`)
		if path == "/" {
			b.wait(t, `!document.getElementById("verdict").checkVisibility()`)
		}
		b.axe(t, "outage "+path)
		way.open()
		b.wait(t, `document.getElementById("outage").hidden && !document.documentElement.classList.contains("stale")`)
	}
}

package httpapi

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
)

// framedTwice reports whether a request says twice, and in two ways, where it ends:
// what a proxy before us took for its body might be a request to us (RFC 9112, 6.3).
func framedTwice(raw []byte) bool {
	var length, encoding bool
	for line := range bytes.Lines(raw) {
		name, _, _ := bytes.Cut(line, []byte{':'})
		switch len(name) {
		case len(fasthttp.HeaderContentLength):
			length = length || strings.EqualFold(unsafeString(name), fasthttp.HeaderContentLength)
		case len(fasthttp.HeaderTransferEncoding):
			encoding = encoding || strings.EqualFold(unsafeString(name), fasthttp.HeaderTransferEncoding)
		}
	}
	return length && encoding
}

// hasBareLF reports whether a line of a head ends without CR. A proxy that takes that
// for the end of a line and one that does not see different headers, and so different
// ends of a message (RFC 9112, 2.2). Such a request is refused.
func hasBareLF(head []byte) bool {
	for i := 0; ; i++ {
		n := bytes.IndexByte(head[i:], '\n')
		if n < 0 {
			return false
		}
		if i += n; i == 0 || head[i-1] != '\r' {
			return true
		}
	}
}

// originForm cuts scheme://authority off a target, which a client may send as to a
// proxy; the authority is the host then, whatever Host says (RFC 9112, 3.2.2).
func originForm(h *fasthttp.RequestHeader) {
	uri := string(h.RequestURI())
	origin := engine.TargetOf(uri)
	path, _, _ := strings.Cut(uri[len(origin):], "#")
	scheme, host, _ := strings.Cut(origin, "://")
	if strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https") {
		h.SetHost(host)
		h.SetRequestURI(path)
	}
}

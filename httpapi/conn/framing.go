package conn

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
)

var contentLength, transferEncoding = []byte(fasthttp.HeaderContentLength), []byte(fasthttp.HeaderTransferEncoding)

// FramedTwice reports whether a request says twice, and in two ways, where it ends:
// what a proxy before us took for its body might be a request to us (RFC 9112, 6.3).
func FramedTwice(raw []byte) bool {
	var length, encoding bool
	for line := range bytes.Lines(raw) {
		name, _, _ := bytes.Cut(line, []byte{':'})
		switch len(name) {
		case len(fasthttp.HeaderContentLength):
			length = length || bytes.EqualFold(name, contentLength)
		case len(fasthttp.HeaderTransferEncoding):
			encoding = encoding || bytes.EqualFold(name, transferEncoding)
		}
	}
	return length && encoding
}

// HasBareLF reports whether a line of a head ends without CR. A proxy that takes that
// for the end of a line and one that does not see different headers, and so different
// ends of a message (RFC 9112, 2.2). Such a request is refused.
func HasBareLF(head []byte) bool {
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

// OriginForm cuts scheme://authority off a target, which a client may send as to a
// proxy; the authority is the host then, whatever Host says (RFC 9112, 3.2.2).
func OriginForm(h *fasthttp.RequestHeader) {
	uri := string(h.RequestURI())
	origin := engine.TargetOf(uri)
	path, _, _ := strings.Cut(uri[len(origin):], "#")
	scheme, host, _ := strings.Cut(origin, "://")
	if strings.EqualFold(scheme, "http") || strings.EqualFold(scheme, "https") {
		h.SetHost(host)
		h.SetRequestURI(path)
	}
}

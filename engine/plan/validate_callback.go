package plan

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"xtimer/engine"
)

// Limits of a callback.
const (
	maxURL         = 2 << 10
	maxBody        = 512 << 10 // a request to the API has at most 1 MiB
	maxHeaders     = 64
	maxHeaderName  = 64
	maxHeaderValue = 4 << 10
	maxHeaderBytes = 16 << 10
	minBatch       = 2
	maxBatch       = 1000
	maxBatchWait   = time.Second
)

// ownHeaders are those that the connection, the client or xtimer itself writes;
// a name that ends in "-" stands for all that begin so.
var ownHeaders = []string{
	"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer",
	"expect", "proxy-", "x-xtimer-", "idempotency-key", "webhook-", "traceparent", "tracestate",
}

func (c *checks) callback(b *engine.Callback) {
	c.err("callback.url", checkURL(b.URL))
	switch b.Method {
	case "GET", "POST", "PUT", "PATCH", "DELETE":
	default:
		c.want(false, "callback.method", "%.32q is not one of GET, POST, PUT, PATCH and DELETE", b.Method)
	}
	field := "callback." + bodyField(b.BodyKind)
	c.want(len(b.Body) <= maxBody, field, "has %d bytes; at most %d are allowed", len(b.Body), maxBody)
	// A client leaves a GET's body out, without a word.
	c.want(!b.HasBody || b.Method != "GET", field, "a GET request must not have a body")
	c.between(b.Timeout, minTimeout, maxTimeout, "callback.timeout")
	c.err("callback.success", checkSuccess(b.Success))
	c.headers(b.Headers)
	c.batch(b)
}

func (c *checks) batch(b *engine.Callback) {
	if b.Batch == nil {
		return
	}
	const method = "callback.method"
	if b.Method != "POST" && b.Method != "PUT" {
		c.code = "batch_method"
		c.want(false, method, "a batch is sent with POST or PUT, not with %.32q", b.Method)
	}
	c.want(minBatch <= b.Batch.Max && b.Batch.Max <= maxBatch, "callback.batch.max", "%d is not in the range %d to %d", b.Batch.Max, minBatch, maxBatch)
	c.between(b.Batch.Wait, 0, maxBatchWait, "callback.batch.wait")
}

// bodyField is the field of a request that the body was given in.
func bodyField(k engine.BodyKind) string {
	switch k {
	case engine.BodyText:
		return "body_text"
	case engine.BodyBase64:
		return "body_base64"
	}
	return "body"
}

// headers checks what goes on the wire as it is: the client we use does not.
func (c *checks) headers(hs []engine.Header) {
	const field = "callback.headers"
	c.want(len(hs) <= maxHeaders, field, "has %d entries; at most %d are allowed", len(hs), maxHeaders)
	if len(hs) > maxHeaders {
		return
	}
	size, seen := 0, map[string]bool{}
	for _, h := range hs {
		f, name := fieldOf(field, h.Name), strings.ToLower(h.Name)
		size += len(h.Name) + len(h.Value) + len(h.Secret)
		// The characters of a token, RFC 9110.
		c.want(word(h.Name, maxHeaderName, "!#$%&'*+-.^_`|~"), f, "a header name must be 1 to %d token characters", maxHeaderName)
		c.want(!isOwn(name), f, "this header is set by xtimer or by the connection")
		c.want(!seen[name], f, "the header is given twice")
		seen[name] = true
		c.want(len(h.Value) <= maxHeaderValue, f, "the value has %d bytes; at most %d are allowed", len(h.Value), maxHeaderValue)
		c.want(h.Secret == "" || word(h.Secret, 128, "._:/-"), f, "the name of a secret must be 1 to 128 letters, digits or characters from ._:/-")
		c.want(strings.IndexFunc(h.Value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) < 0, f,
			"the value contains a control character")
	}
	c.want(size <= maxHeaderBytes, field, "all headers together have %d bytes; at most %d are allowed", size, maxHeaderBytes)
}

// isOwn reports whether a header, named in small letters, is one of ownHeaders. "_" is
// as good as "-": receivers that hand headers on as variables (CGI, WSGI, PHP) make
// one of both.
func isOwn(name string) bool {
	name = strings.ReplaceAll(name, "_", "-")
	for _, own := range ownHeaders {
		if name == own || own[len(own)-1] == '-' && strings.HasPrefix(name, own) {
			return true
		}
	}
	return false
}

// checkURL refuses what two readers of a URL could read differently. Where it
// leads is judged when it is dialled.
func checkURL(s string) error {
	if s == "" {
		return errRequired
	}
	if len(s) > maxURL {
		return fmt.Errorf("has %d bytes; at most %d are allowed", len(s), maxURL)
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f || s[i] == '\\' {
			return fmt.Errorf("byte %d is %q: percent-encode it, and write a host name in its ASCII form", i, s[i])
		}
	}
	rest, http := cutScheme(s)
	if !http {
		return errors.New("must begin with http:// or https://")
	}
	u, err := url.Parse(s)
	if err != nil {
		err = errors.Unwrap(err) // without the URL once more
		return fmt.Errorf("cannot be parsed: %.200v", err)
	}
	authority := rest[:authorityLen(rest)]
	switch {
	case u.User != nil || strings.Contains(authority, "@"):
		return errors.New("must not contain a user; send credentials in a header")
	case strings.Contains(s, "#"):
		return errors.New("must not have a fragment, which is never sent; write # as %23")
	case u.Host != authority || strings.Contains(authority, "%"):
		return fmt.Errorf("%.80q is not a host", authority)
	}
	if err := checkPort(authority); err != nil {
		return err
	}
	return checkHost(u.Hostname(), strings.HasPrefix(authority, "["))
}

// cutScheme cuts http:// or https:// off.
func cutScheme(s string) (rest string, ok bool) {
	for _, p := range [...]string{"http://", "https://"} {
		if len(s) >= len(p) && strings.EqualFold(s[:len(p)], p) {
			return s[len(p):], true
		}
	}
	return s, false
}

func authorityLen(s string) int {
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		return i
	}
	return len(s)
}

func checkPort(authority string) error {
	i := strings.LastIndexByte(authority, ':')
	if i < 0 || strings.HasSuffix(authority, "]") {
		return nil
	}
	n, err := strconv.ParseUint(authority[i+1:], 10, 16)
	if err != nil || n == 0 || len(authority)-i > 6 {
		return fmt.Errorf("%.16q is not a port from 1 to 65535", authority[i+1:])
	}
	return nil
}

func checkHost(host string, bracketed bool) error {
	if bracketed {
		if a, err := netip.ParseAddr(host); err != nil || !a.Is6() || a.Zone() != "" {
			return fmt.Errorf("%.64q is not an IPv6 address", host)
		}
		return nil
	}
	if len(host) > 253 {
		return fmt.Errorf("the host name has %d bytes; at most 253 are allowed", len(host))
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(host, "."), ".") {
		if !word(label, 63, "-_") {
			return fmt.Errorf("%.80q is not a host name", host)
		}
	}
	return nil
}

package callback

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"xtimer/engine"
	"xtimer/httpapi/wire"
)

// splitURL cuts a URL into scheme://host:port and the rest, without a fragment.
func splitURL(url string) (origin, path string) {
	origin = engine.TargetOf(url)
	path, _, _ = strings.Cut(url[len(origin):], "#")
	return origin, path
}

// appendRequest is the request of a call as it goes on the wire.
//
// A callback without a body sends the default envelope; only a GET sends none. Whatever
// stands in a timer, the request is one request with the headers named here:
// line breaks in values become spaces, and headers that carry the request or
// the task's identity are not the user's to set.
func (c *Caller) appendRequest(s *scratch, call *engine.Call, t *target, path string, now time.Time) []byte {
	tm, cb := call.Timer, &call.Timer.Callback
	key := call.Key.Append(s.key[:0])
	due := wire.AppendTime(s.due[:0], call.Key.Due)

	body, kind, sendsBody := cb.Body, cb.BodyKind, cb.HasBody
	if !sendsBody && cb.Method != "GET" {
		s.body = appendEnvelope(s.body[:0], call, key, due)
		body, kind, sendsBody = s.body, engine.BodyJSON, true
	}

	b, typed := c.appendHead(s.request[:0], s, cb, t, path)
	if sendsBody {
		if !typed {
			b = append(b, "\r\nContent-Type: "...)
			b = append(b, bodyType(kind)...)
		}
		b = append(b, "\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(len(body)), 10)
	}

	b = append(b, "\r\nIdempotency-Key: "...)
	b = append(b, key...)
	b = append(b, "\r\nX-Xtimer-Task: "...)
	b = append(b, key...)
	b = append(b, "\r\nX-Xtimer-Timer: "...)
	b = append(b, timerOf(key)...)
	b = append(b, "\r\nX-Xtimer-App: "...)
	b = appendEscaped(b, tm.App)
	b = append(b, "\r\nX-Xtimer-Name: "...)
	b = appendEscaped(b, tm.Name)
	b = append(b, "\r\nX-Xtimer-Due: "...)
	b = append(b, due[1:len(due)-1]...)
	b = append(b, "\r\nX-Xtimer-Attempt: "...)
	b = strconv.AppendInt(b, int64(call.Attempt), 10)
	if call.Redelivered {
		b = append(b, "\r\nX-Xtimer-Redelivered: 1"...)
	}
	if call.Fence != 0 {
		b = append(b, "\r\nX-Xtimer-Fence: "...)
		b = appendFence(b, call)
	}

	b = c.appendSignature(b, s, tm.App, key, body, now)
	b = append(b, "\r\n\r\n"...)
	if sendsBody {
		b = append(b, body...)
	}
	return b
}

// appendHead is the beginning of a request: the request line, and the headers that do not
// depend on the task. typed: the timer has a Content-Type of its own.
func (c *Caller) appendHead(b []byte, s *scratch, cb *engine.Callback, t *target, path string) (_ []byte, typed bool) {
	b = append(b, cb.Method...)
	b = append(b, ' ')
	b = appendPath(b, path)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, t.authority...)
	b, typed, agent := appendOwn(b, cb.Headers, s.secrets)
	if !agent {
		b = append(b, "\r\nUser-Agent: "...)
		b = append(b, c.agent...)
	}
	return b, typed
}

// appendFence is the shard of a call's task, and the fence under which the node has it.
func appendFence(b []byte, call *engine.Call) []byte {
	b = strconv.AppendInt(b, int64(call.Key.Timer.Shard()), 10)
	b = append(b, '.')
	return strconv.AppendUint(b, call.Fence, 10)
}

// appendSignature signs a body for an app that has secrets.
func (c *Caller) appendSignature(b []byte, s *scratch, app string, id, body []byte, now time.Time) []byte {
	signers := c.signers[app]
	if len(signers) == 0 {
		return b
	}
	stamp := strconv.AppendInt(s.stamp[:0], now.Unix(), 10)
	b = append(b, "\r\nwebhook-id: "...)
	b = append(b, id...)
	b = append(b, "\r\nwebhook-timestamp: "...)
	b = append(b, stamp...)
	b = append(b, "\r\nwebhook-signature:"...)
	for _, sg := range signers {
		b = append(b, ' ')
		b = sg.append(b, id, stamp, body)
	}
	return b
}

// appendOwn writes the user's own headers, in the order given, with the values of those that
// are secrets. It reports whether a
// Content-Type and a User-Agent are among them.
func appendOwn(b []byte, headers []engine.Header, secrets []string) (_ []byte, typed, agent bool) {
	for i := range headers {
		h := &headers[i]
		value := h.Value
		if h.Secret != "" {
			value, secrets = secrets[0], secrets[1:]
		}
		if !isToken(h.Name) || isReserved(h.Name) {
			continue
		}
		typed = typed || strings.EqualFold(h.Name, "Content-Type")
		agent = agent || strings.EqualFold(h.Name, "User-Agent")
		b = append(b, "\r\n"...)
		b = append(b, h.Name...)
		b = append(b, ": "...)
		b = appendValue(b, value)
	}
	return b, typed, agent
}

func bodyType(kind engine.BodyKind) string {
	switch kind {
	case engine.BodyText:
		return "text/plain; charset=utf-8"
	case engine.BodyBase64:
		return "application/octet-stream"
	}
	return "application/json"
}

// timerOf is the timer's part of a key.
func timerOf(key []byte) []byte { return key[:bytes.IndexByte(key, '_')] }

// appendEnvelope is the default body; key and due as they stand in it.
func appendEnvelope(b []byte, call *engine.Call, key, due []byte) []byte {
	b = append(b, `{"task":"`...)
	b = append(b, key...)
	b = append(b, `","timer":"`...)
	b = append(b, timerOf(key)...)
	b = append(b, `","app":`...)
	b = wire.AppendText(b, call.Timer.App)
	b = append(b, `,"name":`...)
	b = wire.AppendText(b, call.Timer.Name)
	b = append(b, `,"due":`...)
	b = append(b, due...)
	b = append(b, `,"attempt":`...)
	b = strconv.AppendInt(b, int64(call.Attempt), 10)
	return append(b, '}')
}

// appendPath writes what comes after the host in a URL; bytes that may not
// stand in a request line are percent-encoded.
func appendPath(b []byte, path string) []byte {
	if path == "" || path[0] != '/' {
		b = append(b, '/')
	}
	return appendPercent(b, path, &wirePath)
}

// appendEscaped writes a name so that any header can carry it: all but
// printable ASCII without blank and '%' is percent-encoded, of its UTF-8. So a
// reader may always percent-decode, and need not for plain names.
func appendEscaped(b []byte, s string) []byte { return appendPercent(b, s, &wireName) }

func appendPercent(b []byte, s string, asIs *[256]bool) []byte {
	done := 0
	for i := range len(s) {
		if ch := s[i]; !asIs[ch] {
			b = append(b, s[done:i]...)
			b = append(b, '%', "0123456789ABCDEF"[ch>>4], "0123456789ABCDEF"[ch&15])
			done = i + 1
		}
	}
	return append(b, s[done:]...)
}

// appendValue writes a header's value on one line.
func appendValue(b []byte, s string) []byte {
	done := 0
	for i := range len(s) {
		if ch := s[i]; ch < ' ' && ch != '\t' || ch == 0x7f {
			b = append(b, s[done:i]...)
			b = append(b, ' ')
			done = i + 1
		}
	}
	return append(b, s[done:]...)
}

var wirePath, wireName, wireToken = func() (path, name, token [256]bool) {
	for ch := '!'; ch <= '~'; ch++ {
		path[ch] = true
		name[ch] = ch != '%'
		token[ch] = !strings.ContainsRune(`"(),/:;<=>?@[\]{}`, ch)
	}
	return path, name, token
}()

func isToken(s string) bool {
	for i := range len(s) {
		if !wireToken[s[i]] {
			return false
		}
	}
	return s != ""
}

// isReserved reports whether a header is not a user's to set, in whatever case and
// with "_" for "-", which many a receiver takes for the same.
func isReserved(name string) bool {
	is := func(s string) bool { return len(name) == len(s) && beginsLike(name, s) }
	begins := func(s string) bool { return beginsLike(name, s) }
	switch name[0] | 0x20 {
	case 'c':
		return is("Connection") || is("Content-Length")
	case 'e':
		return is("Expect")
	case 'h':
		return is("Host")
	case 'i':
		return is("Idempotency-Key")
	case 'k':
		return is("Keep-Alive")
	case 'p':
		return begins("Proxy-")
	case 't':
		return is("TE") || is("Trailer") || is("Transfer-Encoding") || is("Traceparent") || is("Tracestate")
	case 'u':
		return is("Upgrade")
	case 'w':
		return begins("Webhook-")
	case 'x':
		return begins("X-Xtimer-")
	}
	return false
}

// beginsLike reports whether a token begins with a header's name, or all of it.
func beginsLike(token, name string) bool {
	if len(token) < len(name) {
		return false
	}
	for i := range len(name) {
		ch := token[i]
		if ch == '_' {
			ch = '-'
		}
		if ch|0x20 != name[i]|0x20 {
			return false
		}
	}
	return true
}

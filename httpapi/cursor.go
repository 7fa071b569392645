package httpapi

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

// CursorKeySize is the length of ServerConfig.CursorKey, in bytes.
const CursorKeySize = 32

// cursors seals the place where a list goes on. Without that a page would tell where
// the timers and tasks of other apps lie between the token's own, and a token could
// name any place.
type cursors struct{ aead cipher.AEAD }

// newCursors takes a key of CursorKeySize; without one it makes its own.
func newCursors(key []byte) (c cursors, err error) {
	if key == nil {
		key = make([]byte, CursorKeySize)
		rand.Read(key)
	}
	if len(key) != CursorKeySize {
		return c, fmt.Errorf("the key of cursors has %d bytes, not %d", len(key), CursorKeySize)
	}
	block, err := aes.NewCipher(key)
	if err == nil {
		c.aead, err = cipher.NewGCMWithRandomNonce(block)
	}
	return c, err
}

// scope is what a cursor is good for: the list, and the app of the token.
func (r *request) scope() []byte { return []byte(r.route.path + "\n" + r.Grant.App) }

// cursorMember appends the cursor of the next page, if there is one.
func (s *Server) cursorMember(b []byte, r *request, next string) []byte {
	if next == "" {
		return b
	}
	b = append(wire.Member(b, "next_cursor"), '"')
	return append(base64.RawURLEncoding.AppendEncode(b, s.cursors.aead.Seal(nil, nil, []byte(next), r.scope())), '"')
}

// cursor reads the place that a cursor of this list names; "" is the beginning.
func (s *Server) cursor(r *request) (string, error) {
	text := r.query["cursor"]
	if text == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		b, err = s.cursors.aead.Open(nil, nil, b, r.scope())
	}
	if err != nil {
		return "", errBadCursor
	}
	return string(b), nil
}

// page reads limit and cursor.
func (s *Server) page(r *request) (after string, limit int, err error) {
	limit, err = r.number("limit", defaultLimit, 1, maxLimit)
	after, badCursor := s.cursor(r)
	return after, limit, problem.Together(err, badCursor)
}

var errBadCursor = problem.BadField("cursor", "bad_cursor", "was not issued by this server for this list and this token's app")

const defaultLimit, maxLimit = 100, 1000

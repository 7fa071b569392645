package mysql

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"

	"xtimer/engine"
)

// cursor names the last entry that a page of timers saw: where it stands in the
// order of its path.
type cursor struct {
	text string // of the order: an app, or a name
	num  int64  // of the order: the end, or nameless
	id   engine.TimerID
}

const cursorVersion = 1

// encode writes a cursor with the path it belongs to, so that another refuses
// it, and a checksum, which tells what was cut or altered.
func (c *cursor) encode(scope string) string {
	b := []byte{cursorVersion}
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE([]byte(scope)))
	b = binary.BigEndian.AppendUint64(b, uint64(c.num))
	b = binary.BigEndian.AppendUint64(b, uint64(c.id))
	b = append(b, c.text...)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

func openCursor(s, scope string) (c cursor, err error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) < 25 {
		return c, badCursor()
	}
	end := len(b) - 4
	if b[0] != cursorVersion || binary.BigEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]) ||
		binary.BigEndian.Uint32(b[1:]) != crc32.ChecksumIEEE([]byte(scope)) {
		return c, badCursor()
	}
	c.num, c.id = int64(binary.BigEndian.Uint64(b[5:])), engine.TimerID(binary.BigEndian.Uint64(b[13:]))
	c.text = string(b[21:end])
	return c, nil
}

func badCursor() *engine.Fault {
	const detail = "it is not a cursor of this list"
	return &engine.Fault{
		Kind: engine.FaultMalformed, Code: "malformed", Detail: "cursor: " + detail,
		Fields: []engine.FieldFault{{Field: "cursor", Detail: detail}},
	}
}

package local

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"

	"xtimer/engine"
)

// A cursor names the last key of a page, with the kind of the walk in place of the
// key's first byte: a cursor of one walk is refused by another. A checksum finds a
// cursor that was cut or altered.
func makeCursor(kind byte, rest []byte) string {
	b := append([]byte{valueVersion, kind}, rest...)
	b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

func openCursor(s string, kind byte) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) < 6 {
		return nil, badCursor()
	}
	sum := len(b) - 4
	if crc32.ChecksumIEEE(b[:sum]) != binary.LittleEndian.Uint32(b[sum:]) || b[0] != valueVersion || b[1] != kind {
		return nil, badCursor()
	}
	return b[2:sum], nil
}

func badCursor() *engine.Fault {
	const detail = "it is not a cursor of this list"
	return &engine.Fault{
		Kind: engine.FaultMalformed, Code: "malformed", Detail: "cursor: " + detail,
		Fields: []engine.FieldFault{{Field: "cursor", Detail: detail}},
	}
}

package memory

import (
	"fmt"
	"hash/crc32"
	"strings"

	"xtimer/engine"
)

// A cursor is the last id of a page with a checksum.
func makeCursor(id engine.TimerID) string {
	s := id.String()
	return fmt.Sprintf("%s.%08x", s, crc32.ChecksumIEEE([]byte(s)))
}

func openCursor(s string) (engine.TimerID, error) {
	head, _, _ := strings.Cut(s, ".")
	if id, err := engine.ParseTimerID(head); err == nil && makeCursor(id) == s {
		return id, nil
	}
	const detail = "it is not a cursor of this list"
	return 0, &engine.Fault{
		Kind: engine.FaultMalformed, Code: "malformed", Detail: "cursor: " + detail,
		Fields: []engine.FieldFault{{Field: "cursor", Detail: detail}},
	}
}

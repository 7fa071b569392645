package alert

import "xtimer/engine"

// brief is an event without the names of its timer: 32 bytes.
type brief struct {
	Key    engine.Key
	Ended  int64
	Code   uint16
	Class  uint8
	Status engine.TaskStatus
	N      uint32
}

func briefOf(ev *event) brief { return brief{ev.Key, ev.Ended, ev.Code, ev.Class, ev.Status, ev.N} }

func (b *brief) named(app, name string) event {
	return event{Key: b.Key, App: app, Name: name, Ended: b.Ended, Code: b.Code, Class: b.Class, Status: b.Status, N: b.N}
}

// Bounds of what waits behind the ring: 32 MiB, in pages.
const (
	mostBriefs = 1 << 20
	pageSize   = 1000
)

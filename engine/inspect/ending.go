package inspect

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"xtimer/engine"
)

// EventID names the place of one ended task among all that have ended, for a reader that
// comes back: also after a restart, for it is made of what history keeps. An ID without
// a key is an instant.
type EventID struct {
	Ended int64 // Unix ms
	Key   engine.Key
}

// ParseEventID reads what Append wrote.
func ParseEventID(s string) (id EventID, ok bool) {
	at, key, hasKey := strings.Cut(s, "-")
	n, err := strconv.ParseInt(at, 10, 64)
	if err != nil || n < 0 || n > engine.MaxDue {
		return EventID{}, false
	}
	id.Ended = n
	if hasKey {
		id.Key, err = engine.ParseKey(key)
	}
	return id, err == nil
}

// Append writes the ID to b.
func (id EventID) Append(b []byte) []byte {
	b = strconv.AppendInt(b, id.Ended, 10)
	if id.Key != (engine.Key{}) {
		b = id.Key.Append(append(b, '-'))
	}
	return b
}

// compare orders IDs by the end of their tasks.
func (id EventID) compare(o EventID) int {
	return cmp.Or(cmp.Compare(id.Ended, o.Ended), id.Key.Compare(o.Key))
}

// ending is one task that has ended, as the log keeps it: 64 bytes.
type ending struct {
	EventID
	latest int64        // the highest Ended up to here: the clock may have been set back
	task   *engine.Task // of the newest only; the others are read again
	app    uint64       // a hash
	status engine.TaskStatus
	origin engine.Origin
}

// chunkSize is how many endings the log frees at a time, and maxChunks how many of these
// it keeps: 131,072 endings, in 8 MiB. recentTasks of them have their tasks, which with
// answers of 1 KiB in them take 2 MiB.
const (
	chunkSize   = 4096
	maxChunks   = 32
	recentTasks = 1024
)

// log is the newest endings, in the order in which they were told, by number.
type log struct {
	chunks [][]ending // all full but the last
	first  int64      // the number of the oldest
	next   int64      // the number of the one to come
	began  int64      // every task that ended at this instant (Unix ms) or later was told to the log
}

// add appends an ending.
func (l *log) add(x ending) {
	x.latest = x.Ended
	if l.next > l.first {
		x.latest = max(x.latest, l.at(l.next-1).latest)
	}
	if (l.next-l.first)%chunkSize == 0 {
		if len(l.chunks) == maxChunks {
			l.began = l.chunks[0][chunkSize-1].latest + 1
			l.chunks = slices.Delete(l.chunks, 0, 1)
			l.first += chunkSize
		}
		l.chunks = append(l.chunks, make([]ending, 0, chunkSize))
	}
	last := &l.chunks[len(l.chunks)-1]
	*last = append(*last, x)
	l.next++
	if old := l.next - 1 - recentTasks; old >= l.first {
		l.at(old).task = nil
	}
}

func (l *log) at(n int64) *ending {
	n -= l.first
	return &l.chunks[n/chunkSize][n%chunkSize]
}

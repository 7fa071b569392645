package target

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Key is that of a task.
type Key struct {
	Timer uint64
	Due   int64 // Unix ms
}

// ParseKey reads a key as headers and answers write it.
func ParseKey(s string) (k Key, err error) {
	timer, due, _ := strings.Cut(s, "_")
	if k.Timer, err = strconv.ParseUint(timer, 10, 64); err != nil {
		return k, err
	}
	k.Due, err = strconv.ParseInt(due, 10, 64)
	return k, err
}

type call struct {
	Key
	attempt     int
	redelivered bool
}

// disorder is by how much an older due of a timer may arrive behind a later one:
// calls that run at once may overtake one another.
const disorder = 1000 // ms

// Log is what a target was called with. Lateness and order are those of first
// attempts that were not redelivered.
type Log struct {
	Calls map[Key]int // attempts by task
	Total int
	Early int
	// Disordered counts the calls that came after a due of the same timer that is
	// more than a second later.
	Disordered int

	late   []time.Duration
	latest map[uint64]int64 // due, by timer
}

func (l *Log) reset() {
	*l = Log{Calls: map[Key]int{}, latest: map[uint64]int64{}}
}

func (l *Log) add(c call, now time.Time) {
	l.Total++
	l.Calls[c.Key]++
	late := now.Sub(time.UnixMilli(c.Due))
	if late < 0 {
		l.Early++
	}
	if c.attempt != 1 || c.redelivered {
		return
	}
	l.late = append(l.late, late)
	if c.Due < l.latest[c.Timer]-disorder {
		l.Disordered++
	}
	l.latest[c.Timer] = max(l.latest[c.Timer], c.Due)
}

// Late is a quantile of lateness; 0 if there was no call.
func (l *Log) Late(q float64) time.Duration {
	if len(l.late) == 0 {
		return 0
	}
	slices.Sort(l.late)
	return l.late[min(int(q*float64(len(l.late))), len(l.late)-1)]
}

// Missing counts the keys that were never called.
func (l *Log) Missing(owed []Key) (n int) {
	for _, k := range owed {
		if l.Calls[k] == 0 {
			n++
		}
	}
	return n
}

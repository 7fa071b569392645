package plan

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	_ "time/tzdata" // zones are there even where the system has none
)

// zone turns instants into wall clock readings and back. Both are counted in
// seconds: an instant from 1970 in UTC, a wall reading as if the clock on the
// wall were UTC's.
type zone struct {
	name string
	loc  *time.Location
	last atomic.Pointer[period]
}

// period is a stretch of time during which a zone's offset stays the same.
type period struct{ start, end, off int64 } // start ≤ instant < end; wall = instant + off

// slack is more than two offsets of one zone ever differ by.
const slack = 26 * 3600

var zones struct {
	sync.RWMutex
	m map[string]*zone // by name; as many as the database has names
}

// zoneOf finds a zone by its IANA name; empty is UTC. There is one *zone a name.
func zoneOf(name string) (*zone, error) {
	if name == "" {
		name = "UTC"
	}
	zones.RLock()
	z := zones.m[name]
	zones.RUnlock()
	if z != nil {
		return z, nil
	}
	if !zoneName(name) {
		return nil, fmt.Errorf("%.64q is not a time zone name; write it like Europe/Berlin or UTC", name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("the IANA database has no time zone %q", name)
	}
	zones.Lock()
	defer zones.Unlock()
	if z = zones.m[name]; z == nil {
		if zones.m == nil {
			zones.m = map[string]*zone{}
		}
		name = strings.Clone(name) // it may be a view of a whole record
		z = &zone{name: name, loc: loc}
		zones.m[name] = z
	}
	return z, nil
}

// zoneName reports whether s has the form of an IANA name. LoadLocation reads
// files: whatever else those directories hold, or leads out of them, is refused,
// as are the trees with leap seconds and the machine's own zone.
func zoneName(s string) bool {
	switch {
	case len(s) > 64, s == "Local", s == "localtime", s == "posixrules", s == "Factory",
		strings.HasPrefix(s, "right/"), strings.HasPrefix(s, "posix/"):
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" {
			return false
		}
		for i := range len(part) {
			if c := part[i]; !alnum(c) && c != '_' && c != '-' && c != '+' {
				return false
			}
		}
	}
	return true
}

func alnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// at is the period that holds an instant. Next to real changes of offset, a
// period may also end where nothing changes (the turn of a year).
func (z *zone) at(t int64) period {
	if p := z.last.Load(); p != nil && p.start <= t && t < p.end {
		return *p
	}
	u := time.Unix(t, 0).In(z.loc)
	_, off := u.Zone()
	p := period{math.MinInt64 / 2, math.MaxInt64 / 2, int64(off)}
	start, end := u.ZoneBounds()
	if !start.IsZero() {
		p.start = start.Unix()
	}
	if !end.IsZero() {
		p.end = end.Unix()
	}
	if p.end <= t {
		// By its rules for the far years, the library gives every year 365 days:
		// t is the last day of a leap year.
		p.end = (floorDiv(t, 86400) + 1) * 86400
	}
	z.last.Store(&p)
	return p
}

// first is the first instant at which the wall shows w or later: the instant of
// w itself, its first one where the clock was put back, and the first instant
// after the gap where w was skipped. It never decreases as w grows.
func (z *zone) first(w int64) int64 {
	if p := z.last.Load(); p != nil && p.start+slack <= w-p.off && w-p.off < p.end {
		return w - p.off
	}
	for p := z.at(w - slack); ; p = z.at(p.end) {
		if t := max(w-p.off, p.start); t < p.end {
			return t
		}
	}
}

// reached is the latest reading that the wall has shown up to instant t:
// first(w) > t exactly if w > reached(t). It differs from the reading at t only
// while time that was put back is lived through again.
func (z *zone) reached(t int64) int64 {
	p := z.at(t)
	w := t + p.off
	for t-p.start < slack {
		start := p.start
		p = z.at(start - 1)
		w = max(w, start-1+p.off)
	}
	return w
}

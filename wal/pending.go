package wal

import "time"

// pending holds the groups that gather while the disk is busy. Log.mu guards it.
//
// The last group is the one being filled. Buffers go round: a group that was
// committed is filled again, so the steady state allocates nothing.
type pending struct {
	maxGroup int // bytes after which a new group begins
	next     uint64
	groups   []*group
	spare    []*group
}

// maxSpare bounds what is kept for reuse: one group being committed and one
// being filled are the steady state, a burst may take some more.
const maxSpare = 4

// room returns the group that the next record of size bytes goes into.
func (p *pending) room(size int) *group {
	if n := len(p.groups); n > 0 {
		if g := p.groups[n-1]; len(g.b)+size <= p.maxGroup {
			return g
		}
	}
	var g *group
	if n := len(p.spare); n > 0 {
		g, p.spare = p.spare[n-1], p.spare[:n-1]
	} else {
		g = &group{b: make([]byte, 0, 4<<10)}
	}
	g.reset(p.next, time.Now())
	p.groups = append(p.groups, g)
	return g
}

// take moves the oldest groups, together at most limit bytes but at least one,
// to the end of into.
func (p *pending) take(into []*group, limit int) []*group {
	n, size := 0, 0
	for n < len(p.groups) {
		if size += len(p.groups[n].b); n > 0 && size > limit {
			break
		}
		n++
	}
	into = append(into, p.groups[:n]...)
	m := copy(p.groups, p.groups[n:])
	clear(p.groups[m:])
	p.groups = p.groups[:m]
	return into
}

// release takes buffers back for reuse.
func (p *pending) release(gs []*group) {
	for _, g := range gs {
		if len(p.spare) < maxSpare && cap(g.b) <= 2*p.maxGroup {
			p.spare = append(p.spare, g)
		}
	}
	clear(gs)
}

// urgency says how soon the pending records want the disk.
type urgency uint8

const (
	urgeNone   urgency = iota
	urgeBegins         // only Begins: they may linger
	urgeFinish         // results, or something to forget: as soon as the spacing allows
	urgeNow            // somebody waits, or a whole group is full
)

func (p *pending) urgency() urgency {
	switch n := len(p.groups); {
	case n == 0:
		return urgeNone
	case n > 1:
		return urgeNow
	case p.groups[0].finish:
		return urgeFinish
	}
	return urgeBegins
}

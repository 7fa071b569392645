package simulator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"xtimer/bench/checker"
	"xtimer/engine"
)

const (
	// tolerated is by how much the clock of a node may differ from the others' while the node
	// calls.
	tolerated = 500 * time.Millisecond
	// noticed is for how long a node may not know that another has joined.
	noticed = 500 * time.Millisecond
	// farthest is by how much a script sets the clock of a node, or else so far that nobody may go by that clock.
	farthest = 5 * time.Second
	// unseen is for how long a life may not have seen that MySQL went back, or, while its looks are slow, that another
	// node has joined: its lease does not last longer.
	unseen = 1500 * time.Millisecond
	// buried is how long a fault may keep the timers of a node from being called after it is
	// over: until the node is known to be silent, and its shards are taken and recovered.
	buried = 5 * time.Second
)

// judge holds what was called, answered and recorded against what was asked for.
func (f *fleet) judge() Outcome {
	f.holdFences()
	f.holdOneCaller()
	for _, x := range f.ills {
		f.others = append(f.others, checker.Broken{Fault: x.kind.String(), From: f.milli(x.from), To: f.milli(x.to + buried)})
	}
	for _, b := range f.backs { // it is for holdRepeats to say which calls may come again
		for life := range f.born {
			f.others = append(f.others, checker.Broken{Fault: AllBack.String(), From: f.milli(b.from - unsettled - f.slowest()), To: f.milli(b.to + buried), Life: life + 1})
		}
	}
	f.ended = f.deaths()
	f.stood = f.slowest()
	f.holdRepeats()
	for _, g := range f.gives { // calls that are under way then are made again
		f.others = append(f.others, checker.Broken{Fault: "hand-over", From: f.milli(f.begun(g)), To: f.milli(g.at + buried), Life: g.life})
		f.others = append(f.others, checker.Broken{Fault: "end of calls", From: f.milli(g.at - callsGet), To: f.milli(g.at)}) // before it gives
	}
	return f.machine.judge()
}

// begun is when a node had read what it gave with a shard, at the earliest: it may have frozen since, or
// waited for MySQL.
func (f *fleet) begun(g give) time.Duration {
	from := g.at
	for _, x := range f.ills {
		frozen := x.kind == NodeFreeze && x.node == f.homes[g.life]
		slow := x.kind == AllSlow || x.kind == NodeSlow && x.node == f.homes[g.life]
		if (frozen || slow) && x.from <= g.at && g.at <= x.to+time.Second {
			from = min(from, x.from)
		}
	}
	return from
}

// holdArrival: who calls for a shard holds it, under the fence that the call bears. mu is
// held.
func (f *fleet) holdArrival(c *call) {
	shard := c.key.Timer.Shard()
	seen, err := f.table.Look(context.Background(), 0)
	if err != nil {
		return
	}
	if h := seen.Shards[shard]; (h.Holder != uint64(c.life) || h.Fence != c.fence) && !f.hasGoneBack(c.at, c.at) {
		f.broken = append(f.broken, fmt.Sprintf("%s: %s is called at %v by life %d under fence %d, and life %d holds shard %d under fence %d",
			c.name, c.key, c.at, c.life, c.fence, h.Holder, shard, h.Fence))
	}
	if due := time.UnixMilli(c.key.Due); time.Now().Add(tolerated).Before(due) && f.hasOthers(&seen, c.life) && !f.isOutvoted(&seen) {
		f.broken = append(f.broken, fmt.Sprintf("%s: %s is called at %v, %v early by the true time", c.name, c.key, c.at, time.Until(due)))
	}
	if c.wall.UnixMilli() < c.key.Due && !f.isCorrected(c) {
		f.broken = append(f.broken, fmt.Sprintf("%s: %s is called at %v, early by the clock of its node", c.name, c.key, c.at))
	}
}

// hasOthers reports whether another node serves, and has for so long that each node knows that is not
// frozen. A node that is alone calls by its own clock, whatever the table's says; so does one beside a node that is
// drained, until the latter has seen that nobody else serves, and serves again.
func (f *fleet) hasOthers(seen *engine.Membership, life int) bool {
	now, awake, unaware := time.Since(f.begin), time.Duration(0), noticed
	for _, x := range f.ills {
		switch own := x.node == f.homes[life]; {
		case x.from > now:
		case x.kind == NodeFreeze && own:
			awake = max(awake, min(x.to, now))
		case (x.kind == AllSlow || x.kind == AllAway || (x.kind == NodeSlow || x.kind == NodeCut) && own) && now <= x.to+noticed:
			unaware = unseen
		}
	}
	drained := func(n *engine.Node) bool {
		return slices.ContainsFunc(f.ills, func(x ill) bool {
			return x.kind == NodeDrain && x.node == f.homes[int(n.Life)] && x.from <= now && now <= x.to+noticed
		})
	}
	return slices.ContainsFunc(seen.Nodes, func(n engine.Node) bool {
		return n.Life != 0 && n.Life != uint64(life) && n.State == engine.Serving && now-max(f.joined[int(n.Life)], awake) > unaware && !drained(&n)
	})
}

// isOutvoted reports whether most clocks, of the nodes and of the table, are ahead: then these count as right.
func (f *fleet) isOutvoted(seen *engine.Membership) bool {
	now, votes, ahead := time.Since(f.begin), 1, 0
	for i := range seen.Nodes {
		n := &seen.Nodes[i]
		if n.Life == 0 {
			continue
		}
		votes++
		if slices.ContainsFunc(f.ills, func(x ill) bool {
			return x.kind == NodeClock && x.node == f.homes[int(n.Life)] && x.by > tolerated && x.from <= now && now <= x.to+noticed
		}) {
			ahead++
		}
	}
	return 2*ahead > votes
}

// isCorrected reports whether the clock of the node is set, and the call is not early by the true time: a node corrects
// its clock. A clock that is set by little, or that was set while the call was on its way from the wheel, is not.
func (f *fleet) isCorrected(c *call) bool {
	const onItsWay = 100 * time.Millisecond
	right := c.key.Due <= time.Now().Add(tolerated).UnixMilli()
	return slices.ContainsFunc(f.ills, func(x ill) bool {
		isSet := x.from <= c.at && c.at < x.from+onItsWay || x.to <= c.at && c.at < x.to+onItsWay
		return x.kind == NodeClock && x.node == f.homes[c.life] && (isSet || right && x.from <= c.at && c.at < x.to+buried)
	})
}

// hasGoneBack reports whether MySQL went back between two instants, or so shortly before the first
// that lives may not have seen that yet.
func (f *fleet) hasGoneBack(from, to time.Duration) bool {
	return slices.ContainsFunc(f.backs, func(b *back) bool { return b.to <= to && from <= b.to+buried })
}

// lostBy is the time that MySQL has lost, if what was stored of a call may be lost with it.
func (f *fleet) lostBy(c *call) *back {
	for _, b := range f.backs {
		if c.at <= b.to+buried && (c.ended == 0 || c.ended >= b.from-unsettled-f.slowest()) {
			return b
		}
	}
	return nil
}

// mayComeBack reports whether a call may be made again because MySQL went back: what was stored of
// the call before is lost, and who calls does not know of it. The node that made the call knows,
// from its journal, if it had the shard and that journal at the time to which MySQL went back and
// kept both: in the lost time too, or its next life has dropped what the journal had of the shard.
// A life that took the shard began without it.
func (f *fleet) mayComeBack(was, c *call) bool {
	b := f.lostBy(was)
	if b == nil || c.at < b.to {
		return false
	}
	shard, home, disk := c.key.Timer.Shard(), f.homes[was.life], f.disks[was.life]
	h := b.shards[shard]
	kept := h.Holder != 0 && f.disks[c.life] == disk && f.disks[int(h.Holder)] == disk && c.fence == h.Fence+1 &&
		!b.moved.Has(shard) && !f.taken[c.life].Has(shard)
	return !kept || slices.ContainsFunc(f.ended, func(x end) bool { return x.crashed && x.node == home && was.at <= x.at && x.at <= c.at })
}

// holdFences (L9): the calls for a shard begin in the order of its fences, which go on from those
// of before when MySQL goes back.
func (f *fleet) holdFences() {
	var last [engine.Shards]*call
	for _, c := range f.calls { // in the order in which they began
		shard := c.key.Timer.Shard()
		if was := last[shard]; was != nil && c.fence < was.fence && !f.hasGoneBack(was.at, c.at) {
			f.wrong("%s: %s is called at %v under fence %d, after a call under fence %d of its shard", c.name, c.key, c.at, c.fence, was.fence)
		}
		last[shard] = c
	}
}

// holdOneCaller (L13): an attempt that two nodes make is made by the second under a later
// fence, and marked.
func (f *fleet) holdOneCaller() {
	by := map[engine.Key][]*call{}
	for _, c := range f.calls {
		for _, was := range by[c.key] {
			switch {
			case was.life == c.life:
			case f.lostBy(was) != nil && c.at >= f.lostBy(was).to:
				if c.attempt <= was.attempt && !c.redelivered && !f.redriven(c) && !f.wasGiven(f.lostBy(was), c) {
					f.wrong("%s: attempt %d of %s is made at %v by life %d, and attempt %d was at %v by life %d: it is not marked", c.name, c.attempt, c.key, c.at,
						c.life, was.attempt, was.at, was.life)
				}
			case c.fence <= was.fence:
				f.wrong("%s: %s is called at %v by life %d under fence %d, and was at %v by life %d under fence %d", c.name, c.key, c.at, c.life, c.fence,
					was.at, was.life, was.fence)
			case c.attempt <= was.attempt && !c.redelivered && !f.redriven(c) && !f.isSet(was.at, c.at):
				f.wrong("%s: attempt %d of %s is made at %v by life %d, and attempt %d was at %v by life %d: it is not marked", c.name, c.attempt, c.key, c.at,
					c.life, was.attempt, was.at, was.life)
			}
		}
		by[c.key] = append(by[c.key], c)
	}
}

// wasGiven reports whether the life that makes a call knows of no call before it: MySQL went back to where the
// shard was free and clean, or to where the life held the shard and was frozen; or the life got the shard in the
// time that is lost, and has not seen the loss yet.
func (f *fleet) wasGiven(b *back, c *call) bool {
	h := b.shards[c.key.Timer.Shard()]
	slept := slices.ContainsFunc(f.ills, func(x ill) bool {
		return x.kind == NodeFreeze && x.node == f.homes[c.life] && x.from < b.to && b.to < x.to
	})
	gained := h.Holder != uint64(c.life) && h.Fence < c.fence && c.at <= b.to+unseen && f.joined[c.life] < b.to
	return h.Holder == 0 && h.Clean || h.Holder == uint64(c.life) && h.Fence == c.fence && slept || gained
}

// redriven reports whether somebody may have asked for a task once more.
func (f *fleet) redriven(c *call) bool {
	return slices.ContainsFunc(f.asked[c.name], func(r *request) bool { return r.Kind == Retry && r.state != refused && r.sent < c.at })
}

// deaths are when lives ended, or when the table of nodes said so if that was earlier, and since
// when the next owners of their shards may not know what they had done.
func (f *fleet) deaths() (ends []end) {
	for _, x := range f.ended {
		if at, is := f.graves[x.life]; is && at < x.at {
			x.at, x.wall = at, f.begin.Add(at).UnixMilli()
		}
		x.failed = x.failed || f.cutsOff(&x)
		x.up = x.at + buried
		x.upWall = f.begin.Add(x.up).UnixMilli()
		x.at = f.unknownSince(&x)
		ends = append(ends, x)
	}
	slices.SortFunc(ends, func(a, b end) int { return cmp.Compare(a.at, b.at) })
	return ends
}

// cutsOff reports whether a life that was stopped while MySQL was ailing ended with calls under way: the drain
// time of the stop does not last for calls that begin when MySQL is back.
func (f *fleet) cutsOff(x *end) bool {
	const drain = 30 * time.Second
	ailing := slices.ContainsFunc(f.ills, func(y ill) bool {
		return (y.kind == AllAway || y.kind == AllSlow || y.kind == NodeCut || y.kind == NodeSlow) && y.from <= x.at && x.at <= y.to+drain
	})
	return ailing && slices.ContainsFunc(f.calls, func(c *call) bool { return c.life == x.life && c.at <= x.at && (c.ended == 0 || c.ended > x.at) })
}

// unsettled is for how long what was answered may not be settled when nothing ails MySQL: a
// result waits for the older tasks of its shard that are not finished, until 15 s after its due,
// and then for the next settle. The journal and the mirror have it meanwhile.
const unsettled = 16 * time.Second

// refilled is how long after a loss a mirror has all again.
const refilled = 2 * time.Second

// unknownSince is since when it is not known what a life has done: while its node was
// frozen it told nobody, and while its mirror was away, or was lost, only MySQL.
func (f *fleet) unknownSince(x *end) (since time.Duration) {
	since = x.at
	for again := true; again; {
		again = false
		for _, y := range f.ills {
			from, to := y.from, y.to+buried
			switch y.kind {
			case NodeFreeze:
				if y.node != x.node {
					continue
				}
			case NodeWarm, MirrorLost: // of another node: of the one that takes the shards
				from, to = max(0, from-f.slowest()-unsettled), y.to+refilled
			default:
				continue
			}
			if from < since && since <= to {
				since, again = from, true
			}
		}
	}
	return since
}

// isSet reports whether the clock of a node was far off in a time: what is later than that
// clock the node does not know for begun.
func (f *fleet) isSet(from, to time.Duration) bool {
	return slices.ContainsFunc(f.ills, func(x ill) bool { return x.kind == NodeClock && x.from <= to && from <= x.to+buried })
}

// slowest is for how long MySQL may have stored nothing of a node, at most.
func (f *fleet) slowest() (d time.Duration) {
	for _, x := range f.ills {
		switch x.kind {
		case NodeCut, NodeSlow, AllAway, AllSlow, NodeFreeze:
			d += x.to - x.from + buried
		}
	}
	return d
}

// holdRepeats (L4, L14, L15): a call that was taken comes again only when the life that made
// it was over before it was known, or gave the shard while the call was under way.
func (f *fleet) holdRepeats() {
	of := map[int]end{}
	for _, x := range f.ended {
		of[x.life] = x
	}
	window := f.unsynced()
	taken := map[engine.Key]*call{}
	for _, c := range f.calls {
		was := taken[c.key]
		if c.answer.class == engine.ClassOK {
			taken[c.key] = c
		}
		if was == nil || f.redriven(c) {
			continue
		}
		x, died := of[was.life]
		given := slices.ContainsFunc(f.gives, func(g give) bool {
			return g.life == was.life && g.shard == c.key.Timer.Shard() && was.at <= g.at && (was.ended == 0 || was.ended-was.at >= callsGet)
		})
		if lost := died && (was.ended == 0 || x.at-was.ended <= window); !lost && !given && !f.mayComeBack(was, c) {
			f.wrong("%s: %s is called at %v by life %d, and was taken at %v, answered at %v, by life %d, which was over at %v", c.name, c.key, c.at, c.life,
				was.at, was.ended, was.life, x.at)
		}
	}
}

// callsGet is how long a call under way may take at a hand-over and is not made again.
const callsGet = 300 * time.Millisecond

package engine

import (
	"cmp"
	"hash/fnv"
	"strings"
)

// Lane names the work of one app for one target with one set of flow keys: the unit that waits, and that memory
// is bounded by. It is a hash, so that it is a number in every index; two of them that
// share one also share a bound, and nothing else.
//
// A row keeps the lane of its timer at the time of writing. After a change of the target the rows are moved
// to the present lane (resident.Memory.Move). A recovery moves rows of timers with overlap queue that were left. Refill
// reads all others from the former lane.
type Lane uint64

// LaneOf is the lane of an app, a target (see TargetOf) and flow keys: FNV-1a of them.
func LaneOf(app, target string, flow Flow) Lane {
	h := fnv.New64a()
	_, _ = h.Write([]byte(app))
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(target))
	if flow != "" {
		_, _ = h.Write([]byte{0})
		_, _ = h.Write([]byte(flow))
	}
	return Lane(h.Sum64())
}

// Lane is the lane of the timer as it stands.
func (t *Timer) Lane() Lane { return LaneOf(t.App, TargetOf(t.Callback.URL), t.Flow) }

// forced stands for the flow keys in the lane of forced rows: no key has this character.
const forced = Flow("!")

// ForcedLane is the lane of the rows of manual tasks whose calls no flow key and no target
// limits.
func (t *Timer) ForcedLane() Lane { return LaneOf(t.App, TargetOf(t.Callback.URL), forced) }

// IsForced reports whether a row of the timer is of such a task.
func (t *Timer) IsForced(o *Owed) bool { return o.Origin == FromManual && o.Lane == t.ForcedLane() }

// LaneFor is the lane that a row of the timer belongs to.
func (t *Timer) LaneFor(o *Owed) Lane {
	if t.IsForced(o) {
		return o.Lane
	}
	return t.Lane()
}

// TargetOf is scheme://host:port of a URL, which is what a lane is made of.
func TargetOf(url string) string {
	_, rest, ok := strings.Cut(url, "://")
	if i := strings.IndexAny(rest, "/?#"); ok && i >= 0 {
		return url[:len(url)-len(rest)+i]
	}
	return url
}

// Place is where a row stands in its lane: rows are read in the order of NotBefore,
// timer, due.
type Place struct {
	NotBefore int64
	Key       Key
}

// Place is the row's place in its lane.
func (o *Owed) Place() Place { return Place{o.NotBefore, o.Key} }

// Compare orders places.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.NotBefore, q.NotBefore), cmp.Compare(p.Key.Timer, q.Key.Timer), cmp.Compare(p.Key.Due, q.Key.Due))
}

// Used reports whether the key of the row may have been sent, or was given to a client.
func (o *Owed) Used() bool {
	return o.Begun || o.Task != nil || o.Origin != FromSchedule || o.Damaged != nil
}

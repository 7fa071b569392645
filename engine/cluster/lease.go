package cluster

import (
	"math"
	"sync/atomic"
	"time"
)

// Times are the paces and bounds of a node. All scale with the lease, so that a looker
// always waits for longer than a life may call.
type Times struct {
	Beat    time.Duration // pace of the beats
	Look    time.Duration // pace of the looks at the other nodes
	Hold    time.Duration // how long a life may call after it began to ask
	Silence time.Duration // how long a life must not have beaten to be buried
	// Gap is the most that may lie between two looks of one watch.
	Gap time.Duration
	// Listen is how long a life listens for a beat of the former life of its node, if the
	// former life had the same journal: then its process has ended, or the journal was copied.
	Listen time.Duration
	// Spare is how long a free shard is spared for the node that it is planned for.
	Spare time.Duration
}

// TimesOf returns the times of a lease, which is how long a silent life keeps its shards:
// of 1.8 s a beat each 400 ms, a look each 200 ms and a hold of 1.2 s. While no clock runs
// more than 1.5 times as fast as another, a hold is over before a silence is.
func TimesOf(lease time.Duration) Times {
	return Times{
		Beat: lease / 9 * 2, Look: lease / 9, Hold: lease / 3 * 2,
		Silence: lease, Gap: lease / 9 * 2, Listen: lease / 15 * 4, Spare: lease / 9 * 5,
	}
}

// answer is how long an answer of the table may take. After a beat whose answer is lost, the
// next one begins no later than the lease ends.
func (t *Times) answer() time.Duration { return t.Hold - t.Beat }

// Lease says until when a life may call: for a hold from the *start* of its last request
// that was acknowledged. The other nodes see what the request did after that start, so the
// lease is over before they bury the life, however long the answer took. A request without
// an answer extends nothing.
//
// Instants are readings of a clock that does not stand still while the machine is
// suspended, and that nobody sets. Any goroutine may call its methods.
type Lease struct {
	hold  time.Duration
	until atomic.Int64
	over  atomic.Bool
}

// NewLease returns a lease that is not fresh yet.
func NewLease(hold time.Duration) *Lease {
	l := &Lease{hold: hold}
	l.until.Store(math.MinInt64)
	return l
}

// Acknowledge notes that a request was acknowledged that began at an instant. A request that
// is acknowledged after a later request changes nothing.
func (l *Lease) Acknowledge(began time.Duration) {
	until := int64(began + l.hold)
	for was := l.until.Load(); until > was && !l.until.CompareAndSwap(was, until); was = l.until.Load() {
	}
}

// acknowledged is when the last request began that was acknowledged; 0 for none.
func (l *Lease) acknowledged() time.Duration {
	return max(time.Duration(l.until.Load()), l.hold) - l.hold
}

// Fresh reports whether the life may call at an instant.
func (l *Lease) Fresh(now time.Duration) bool { return int64(now) < l.until.Load() && !l.over.Load() }

// End ends the lease: it is never fresh again.
func (l *Lease) End() { l.over.Store(true) }

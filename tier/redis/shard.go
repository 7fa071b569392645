package redis

import (
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"xtimer/engine"
)

// bucketSize is how many entries a bucket holds on average before its minute
// gets one more. A script works on one bucket at a time, and Redis does nothing
// else meanwhile.
const bucketSize = 1024

// shard is what this process knows of a shard: the reference.
type shard struct {
	n int

	// mu is held over a call to Redis about the shard, so what is read can be
	// held against what was written. Several are taken in the order of n.
	mu sync.Mutex
	// run is the token under which the shard is written; "" before the first
	// write, and after a loss: the next write takes the shard over. token makes
	// the next one.
	run   string
	token func() string
	// acked and sent count the writes of the run; they differ after a write
	// whose outcome is not known.
	acked, sent int64
	until       int64 // when the last of its minutes ends, Unix ms
	buckets     map[int64]*minuteBuckets
	lost        map[int64]int  // minutes that were lost: how many buckets Redis may have of them
	hours       map[int64]bool // whose hash of definitions is ours
	updated     updates
}

// minuteBuckets are the buckets of one minute of a shard.
type minuteBuckets struct {
	seals int // how often something had been sealed when the last entry came
	parts []part
}

// part is what one bucket holds: how many, and the sum of weigh.
type part struct{ count, sum int64 }

func newShard(n int, run string) *shard {
	runs := 0
	return &shard{
		n: n, buckets: map[int64]*minuteBuckets{}, lost: map[int64]int{}, hours: map[int64]bool{},
		token: func() string { runs++; return run + "-" + strconv.Itoa(runs) },
	}
}

func manifestKey(shard int) string { return "xt:{s" + strconv.Itoa(shard) + "}" }

func (s *shard) bucketKey(minute int64, k int) string {
	return manifestKey(s.n) + ":" + bucketField(minute, k)
}

func (s *shard) hourKey(hour int64) string {
	return manifestKey(s.n) + ":d:" + strconv.FormatInt(hour, 10)
}

func bucketField(minute int64, k int) string {
	return strconv.FormatInt(minute, 10) + ":" + strconv.Itoa(k)
}

// member is a timer in a bucket.
func member(id engine.TimerID) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(id))
	return string(b[:])
}

// weigh is what an entry adds to the sum of its bucket: 48 bits of SHA-1, the
// one hash that a script has at hand.
func weigh(member string, due int64) int64 {
	var b [32]byte
	h := sha1.Sum(strconv.AppendInt(append(b[:0], member...), due, 10))
	return int64(binary.BigEndian.Uint64(h[:8]) >> 16)
}

const sumMask = 1<<48 - 1

// partOf is the bucket of a timer when its minute has n of them: linear hashing,
// so one more bucket splits one other and leaves the rest alone.
func partOf(member string, n int) int {
	if n == 1 {
		return 0
	}
	h := sha1.Sum([]byte(member))
	x := int(h[0])<<8 | int(h[1])
	p := roundUp(n)
	if k := x % p; k < n {
		return k
	}
	return x % (p / 2)
}

// roundUp is the next power of two.
func roundUp(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// count of the minute's entries.
func (b *minuteBuckets) count() (n int64) {
	for _, p := range b.parts {
		n += p.count
	}
	return n
}

// versioned is a definition as it is kept: its version first, so that a script
// can compare.
func versioned(definition []byte) (value string, version uint32, err error) {
	var t engine.Timer
	if err := engine.DecodeTimerHead(definition, &t); err != nil {
		return "", 0, fmt.Errorf("cannot read a definition: %w", err)
	}
	var b strings.Builder
	b.Grow(4 + len(definition))
	var head [4]byte
	binary.BigEndian.PutUint32(head[:], t.Version)
	b.Write(head[:])
	b.Write(definition)
	return b.String(), t.Version, nil
}

// isFull reports whether the minute needs one more bucket.
func (b *minuteBuckets) isFull() bool { return b.count() > bucketSize*int64(len(b.parts)) }

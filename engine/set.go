package engine

import (
	"iter"
	"math/bits"
)

// Set is a set of shards: what one node reads of a cold tier, or takes.
type Set [Shards / 64]uint64

// AllShards is the set of a process that is alone.
var AllShards = Set{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}

// SetOf is the set of the shards.
func SetOf(shards ...int) (s Set) {
	for _, i := range shards {
		s[i/64] |= 1 << (i % 64)
	}
	return s
}

// Has reports whether a shard is in the set.
func (s Set) Has(shard int) bool { return s[shard/64]>>(shard%64)&1 == 1 }

// Len is how many shards are in the set.
func (s Set) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Union is the set of the shards that are in either.
func (s Set) Union(t Set) Set {
	for i := range s {
		s[i] |= t[i]
	}
	return s
}

// Without is the set of its shards that are not in the other.
func (s Set) Without(t Set) Set {
	for i := range s {
		s[i] &^= t[i]
	}
	return s
}

// Both is the set of the shards that are in both.
func (s Set) Both(t Set) Set {
	for i := range s {
		s[i] &= t[i]
	}
	return s
}

// All gives the shards of the set, in order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(i*64 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

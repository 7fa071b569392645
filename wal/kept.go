package wal

import (
	"encoding/binary"
	"fmt"
	"sort"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"xtimer/engine"
)

// kept knows the committed groups, and which of them stay for how long.
//
//	     floor                settled            durable
//	gone   |   forgotten, kept   |   not forgotten  |
//
// What is forgotten the cold tier has stored. A server that goes back to an earlier state,
// as one restored from a snapshot or a replica without the last commits does, has lost
// some of that. So groups stay for Config.Keep after their commit, up to bytes, and the
// watermarks of the cold tier are noted: a start that finds earlier ones in the cold tier
// replays what is kept as well. It is then as if the cold tier had not been reached since.
//
// Log.mu guards kept.
type kept struct {
	keep    time.Duration
	bytes   uint64 // how many bytes of forgotten groups stay at most
	floor   uint64 // positions below it are gone
	settled uint64 // positions below it are forgotten
	places  []place
	written uint64             // bytes of all groups since the floor of the last Open
	w       *engine.Watermarks // as Forget was told; nil: nothing is kept
	noted   bool               // w is on the disk
}

// place is a committed group.
type place struct {
	first  uint64
	before uint64    // bytes of the groups before it
	at     time.Time // when it was committed, or found at the start
}

// note takes the watermarks that the cold tier has.
func (k *kept) note(w *engine.Watermarks) {
	if k.w == nil || w == nil {
		return
	}
	for i, t := range w {
		if t != 0 && t != k.w[i] {
			k.w[i], k.noted = t, false
		}
	}
}

// add appends a group.
func (k *kept) add(first uint64, size int, at time.Time) {
	k.places = append(k.places, place{first, k.written, at})
	k.written += uint64(size)
}

// boundary is the last one between groups that is not above p; durable is the end of all.
func (k *kept) boundary(p, durable uint64) uint64 {
	if p >= durable {
		return durable
	}
	i := k.from(p + 1)
	if i == 0 {
		return k.floor
	}
	return k.places[i-1].first
}

// from is the index of the first group at or above a position.
func (k *kept) from(p uint64) int {
	return sort.Search(len(k.places), func(i int) bool { return k.places[i].first >= p })
}

// droppable is up to where nothing needs to stay any more, where what lies below settled
// is forgotten.
func (k *kept) droppable(settled uint64, now time.Time) uint64 {
	forgotten := k.places[:k.from(settled)]
	if k.keep == 0 || len(forgotten) == 0 {
		return settled
	}
	end := k.written
	if len(forgotten) < len(k.places) {
		end = k.places[len(forgotten)].before
	}
	i := sort.Search(len(forgotten), func(i int) bool {
		return now.Sub(forgotten[i].at) < k.keep && end-forgotten[i].before <= k.bytes
	})
	if i == len(forgotten) {
		return settled
	}
	return forgotten[i].first
}

// step is what a commit changes: groups go, and more is forgotten.
type step struct {
	from, floor, settled uint64
	note                 []byte // nil: nothing is to be noted
}

// step is what the next commit changes, where what lies below settled is forgotten. Groups
// go only when more is forgotten: some five times a second.
func (k *kept) step(settled uint64, now time.Time) step {
	s := step{k.floor, k.floor, settled, nil}
	if settled > k.settled {
		s.floor = k.droppable(settled, now)
	}
	if k.w != nil && (settled > k.settled || !k.noted) {
		s.note = binary.LittleEndian.AppendUint64(make([]byte, 0, noteSize), settled)
		for _, t := range k.w {
			s.note = binary.LittleEndian.AppendUint64(s.note, uint64(t))
		}
		k.noted = true
	}
	return s
}

// made notes that a step was committed.
func (k *kept) made(s *step) {
	k.floor, k.settled = s.floor, s.settled
	k.places = k.places[k.from(s.floor):]
}

// The keys of the store; see doc.go.
var (
	keyForgotten = []byte("f")
	keySettled   = []byte("s")
	keyVersion   = []byte("v")
)

const groupPrefix = 'g'

func groupKey(first uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{groupPrefix}, first)
}

// write adds a step to a batch.
func (s *step) write(b *pebble.Batch) error {
	if s.note != nil {
		if err := b.Set(keySettled, s.note, nil); err != nil {
			return err
		}
	}
	if s.floor == s.from {
		return nil
	}
	if err := b.DeleteRange(groupKey(s.from), groupKey(s.floor), nil); err != nil {
		return err
	}
	return b.Set(keyForgotten, binary.BigEndian.AppendUint64(nil, s.floor), nil)
}

// noteSize is the size of a value of keySettled: a position and the watermarks.
const noteSize = 8 + 8*engine.Shards

// readNote decodes a value of keySettled.
func readNote(b []byte) (settled uint64, w *engine.Watermarks, err error) {
	if len(b) != noteSize {
		return 0, nil, fmt.Errorf("the note of what is settled has %d bytes", len(b))
	}
	w = &engine.Watermarks{}
	for i := range w {
		w[i] = int64(binary.LittleEndian.Uint64(b[8+8*i:]))
	}
	return binary.LittleEndian.Uint64(b), w, nil
}

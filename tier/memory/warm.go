// Package memory holds both tiers without a disk: the warm tier of a single
// node, and a cold tier for tests and simulation, plain and obviously right.
package memory

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"xtimer/engine"
)

var _ engine.Warm = (*Warm)(nil)

const (
	minuteMs  = 60_000
	chunkSize = 1024
	pageSize  = 1024
)

// Warm is the warm tier of a single node: ten bytes an entry, an id and the
// offset of its due in the minute. The definitions stay in the cold tier.
type Warm struct {
	mu      sync.Mutex
	minutes map[int64]*bucket // by due / minuteMs; guarded by mu
	entries int               // of all buckets; guarded by mu
}

// bucket holds the entries of a minute in chunks, so that growing neither
// copies nor leaves room unused. Duplicates are dropped by tidy.
type bucket struct {
	chunks []*chunk
	n      int
	sealed engine.Set // the shards for which it is whole
	tidy   bool       // sorted by id, each id once
}

type chunk struct {
	ids     [chunkSize]engine.TimerID
	offsets [chunkSize]uint16
}

// NewWarm builds an empty tier.
func NewWarm() *Warm { return &Warm{minutes: map[int64]*bucket{}} }

// Open has nothing to open.
func (w *Warm) Open(context.Context) error { return nil }

// Close has nothing to close.
func (w *Warm) Close() error { return nil }

// Add puts entries into the buckets of their minutes.
func (w *Warm) Add(_ context.Context, es []engine.Entry) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range es {
		b := w.bucket(es[i].Due / minuteMs)
		b.append(es[i].ID, uint16(es[i].Due%minuteMs))
		b.tidy = false
		w.entries++
	}
	return nil
}

// Seal declares minutes whole for the shards.
func (w *Warm) Seal(_ context.Context, of engine.Set, from, to int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for m := (from + minuteMs - 1) / minuteMs; m*minuteMs < to; m++ {
		b := w.bucket(m)
		b.sealed = b.sealed.Union(of)
		w.clean(b)
	}
	return nil
}

// Load pages through the entries of the shards in a minute in the order of ids.
func (w *Warm) Load(ctx context.Context, of engine.Set, minute int64, yield func([]engine.Entry) error) error {
	w.mu.Lock()
	b := w.minutes[minute/minuteMs]
	if b == nil || of.Without(b.sealed) != (engine.Set{}) {
		w.mu.Unlock()
		return engine.ErrGap
	}
	w.clean(b)
	es := b.entries(minute / minuteMs * minuteMs)
	w.mu.Unlock()
	if of != engine.AllShards {
		es = slices.DeleteFunc(es, func(e engine.Entry) bool { return !of.Has(e.ID.Shard()) })
	}
	for len(es) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(pageSize, len(es))
		if err := yield(es[:n:n]); err != nil {
			return err
		}
		es = es[n:]
	}
	return nil
}

// Update has nothing to do: the definitions stay in the cold tier.
func (w *Warm) Update(context.Context, engine.TimerID, []byte) {}

// Drop forgets the minutes that begin before the instant.
func (w *Warm) Drop(_ context.Context, before int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for m, b := range w.minutes {
		if m*minuteMs < before {
			w.entries -= b.n
			delete(w.minutes, m)
		}
	}
	return nil
}

// Len is the number of entries. One that was added twice may count twice until
// its minute is sealed or loaded.
func (w *Warm) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.entries
}

func (w *Warm) bucket(m int64) *bucket {
	b := w.minutes[m]
	if b == nil {
		b = &bucket{tidy: true}
		w.minutes[m] = b
	}
	return b
}

// clean drops duplicates; of two dues the earlier stays.
func (w *Warm) clean(b *bucket) {
	if b.tidy {
		return
	}
	es := b.entries(0)
	slices.SortFunc(es, func(x, y engine.Entry) int {
		return cmp.Or(cmp.Compare(x.ID, y.ID), cmp.Compare(x.Due, y.Due))
	})
	es = slices.CompactFunc(es, func(x, y engine.Entry) bool { return x.ID == y.ID })
	w.entries -= b.n - len(es)
	b.n, b.tidy = 0, true
	for i := range es {
		b.append(es[i].ID, uint16(es[i].Due))
	}
	used := (b.n + chunkSize - 1) / chunkSize
	clear(b.chunks[used:])
	b.chunks = b.chunks[:used]
}

func (b *bucket) append(id engine.TimerID, offset uint16) {
	if b.n == len(b.chunks)*chunkSize {
		b.chunks = append(b.chunks, new(chunk))
	}
	c := b.chunks[b.n/chunkSize]
	c.ids[b.n%chunkSize], c.offsets[b.n%chunkSize] = id, offset
	b.n++
}

// entries copies the bucket; minute is added to the offsets.
func (b *bucket) entries(minute int64) []engine.Entry {
	es := make([]engine.Entry, b.n)
	for i := range es {
		c := b.chunks[i/chunkSize]
		es[i] = engine.Entry{ID: c.ids[i%chunkSize], Due: minute + int64(c.offsets[i%chunkSize])}
	}
	return es
}

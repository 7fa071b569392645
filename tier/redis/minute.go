package redis

import (
	"context"
	"fmt"
	"slices"
	"time"

	"xtimer/engine"
)

const (
	minuteMs = 60_000
	hourMin  = 60 // minutes of one hash of definitions
	slack    = 15 * time.Minute
)

// Seal declares minutes whole for the shards. ErrGap when something was lost that was
// added since the last Seal: it may be a part of what is declared, so it has to be
// filled again.
func (w *Warm) Seal(_ context.Context, of engine.Set, from, to int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seals++
	if w.torn {
		w.torn = false
		return fmt.Errorf("what was just added was lost: %w", engine.ErrGap)
	}
	for m := (from + minuteMs - 1) / minuteMs; m*minuteMs < to; m++ {
		w.sealed[m] = w.sealed[m].Union(of)
	}
	return nil
}

// isSealed reports whether a minute is whole for all of the shards.
func (w *Warm) isSealed(m int64, shards []*shard) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.sealed[m]
	return !slices.ContainsFunc(shards, func(sh *shard) bool { return !of.Has(sh.n) })
}

// sealCount is how often something was sealed.
func (w *Warm) sealCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seals
}

// unseal notes that a minute of a shard is not whole any more.
func (w *Warm) unseal(shard int, m int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sealed[m] = w.sealed[m].Without(engine.SetOf(shard))
}

// loseMinute forgets the buckets of a minute: they are not what they should be.
func (w *Warm) loseMinute(sh *shard, m int64) {
	b := sh.buckets[m]
	if b == nil {
		return
	}
	delete(sh.buckets, m)
	sh.lost[m] = max(sh.lost[m], len(b.parts)+1) // one more, of a split that got no answer
	n := b.count()
	w.entries.Add(-n)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sealed[m] = w.sealed[m].Without(engine.SetOf(sh.n))
	if n > 0 && b.seals == w.seals {
		w.torn = true
	}
}

// lose forgets a shard: Redis does not have what it acknowledged.
func (w *Warm) lose(sh *shard) {
	for m := range sh.buckets {
		w.loseMinute(sh, m)
	}
	clear(sh.hours)
	sh.run, sh.until = "", 0

	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost++; time.Since(w.told) > 10*time.Second { // there are 256 of them
		w.told = time.Now()
		w.log.Warn("Redis lost what it held of a shard; its minutes are gaps until they are filled again", "shard", sh.n, "losses", w.lost)
	}
}

// Drop forgets the minutes that begin before the instant. What it cannot remove
// from Redis expires there.
func (w *Warm) Drop(ctx context.Context, before int64) error {
	w.mu.Lock()
	for m := range w.sealed {
		if m*minuteMs < before {
			delete(w.sealed, m)
		}
	}
	w.mu.Unlock()
	var ds []dropped
	for _, sh := range w.shards {
		if d := w.forget(sh, before); len(d.keys) > 0 {
			ds = append(ds, d)
		}
	}
	return w.unlink(ctx, ds)
}

// dropped are keys of a shard that nobody needs any more.
type dropped struct {
	shard        int
	keys, fields []string
}

// forget drops the minutes that begin before the instant from the reference.
func (w *Warm) forget(sh *shard, before int64) dropped {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	d := dropped{shard: sh.n}
	drop := func(m int64, buckets int) {
		for k := range buckets {
			d.keys = append(d.keys, sh.bucketKey(m, k))
			d.fields = append(d.fields, bucketField(m, k))
		}
	}
	for m, b := range sh.buckets {
		if m*minuteMs < before {
			drop(m, len(b.parts))
			w.entries.Add(-b.count())
			delete(sh.buckets, m)
		}
	}
	for m, n := range sh.lost {
		if m*minuteMs < before {
			drop(m, n)
			delete(sh.lost, m)
		}
	}
	for h := range sh.hours {
		if (h+1)*hourMin*minuteMs <= before {
			d.keys = append(d.keys, sh.hourKey(h))
			delete(sh.hours, h)
		}
	}
	return d
}

// secondsLeft is the time to live of what ends at the instant.
func secondsLeft(end int64) int64 {
	return int64((max(0, time.Until(time.UnixMilli(end))) + slack) / time.Second)
}

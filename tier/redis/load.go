package redis

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"xtimer/engine"
)

const (
	// shardsPerRead is how many shards are read in one pipeline, at most.
	shardsPerRead = 16
	pageSize      = 1024
)

// Load pages through the buckets of shards in a minute, each held against what was put
// there before any of it is told. While some shards are told the next are read.
func (w *Warm) Load(ctx context.Context, of engine.Set, minute int64, yield func([]engine.Entry) error) error {
	m := minute / minuteMs
	var shards []*shard
	for n := range of.All() {
		shards = append(shards, w.shards[n])
	}
	var reading sync.WaitGroup
	defer reading.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	groups := make(chan group)
	reading.Go(func() {
		defer close(groups)
		for len(shards) > 0 {
			n := together(m, shards)
			var g group
			g.es, g.err = w.read(ctx, m, shards[:n])
			select {
			case groups <- g:
			case <-ctx.Done():
				return
			}
			shards = shards[n:]
		}
	})
	for g := range groups {
		if g.err != nil {
			return g.err
		}
		for es := range slices.Chunk(g.es, pageSize) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := yield(es); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// group is what some shards have of a minute.
type group struct {
	es  []engine.Entry
	err error
}

// together is how many of the shards are read in one pipeline.
func together(m int64, shards []*shard) (n int) {
	for size := int64(0); n < min(shardsPerRead, len(shards)) && size < perPipe; n++ {
		sh := shards[n]
		sh.mu.Lock()
		if b := sh.buckets[m]; b != nil {
			size += b.count()
		}
		sh.mu.Unlock()
	}
	return n
}

// reading is what is read of one bucket.
type reading struct {
	sh    *shard
	key   string
	want  part
	z     *goredis.ZSliceCmd
	defs  []*goredis.SliceCmd
	head  *goredis.SliceCmd // how many writes Redis knows of
	found int               // of its entries, where they begin
}

// read reads a minute of some shards: the buckets, then the definitions, then how
// many writes Redis knows of. The shards are locked meanwhile and nobody else
// writes them, so if these are all, what was read before is not older.
func (w *Warm) read(ctx context.Context, m int64, shards []*shard) ([]engine.Entry, error) {
	for _, sh := range shards {
		sh.mu.Lock()
		defer sh.mu.Unlock()
	}
	// Now, for what another's write finds lost meanwhile has no buckets here either.
	if !w.isSealed(m, shards) {
		return nil, engine.ErrGap
	}
	if err := w.outage.refusal(); err != nil {
		return nil, unavailable(err)
	}
	rs := bucketsOf(m, shards)
	if len(rs) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	es, err := w.readBuckets(ctx, m, rs)
	if err != nil {
		return nil, err
	}
	return es, w.readDefinitions(ctx, m, rs, es)
}

// bucketsOf are the buckets of a minute that have entries. The shards are locked.
func bucketsOf(m int64, shards []*shard) (rs []*reading) {
	for _, sh := range shards {
		b := sh.buckets[m]
		if b == nil {
			continue
		}
		for k, p := range b.parts {
			if p.count > 0 {
				rs = append(rs, &reading{sh: sh, key: sh.bucketKey(m, k), want: p})
			}
		}
	}
	return rs
}

// readBuckets reads the entries of buckets: ErrGap unless they are those that were put
// there.
func (w *Warm) readBuckets(ctx context.Context, m int64, rs []*reading) (es []engine.Entry, gap error) {
	if err := w.ask(ctx, func(p goredis.Pipeliner) {
		for _, r := range rs {
			r.z = p.ZRangeWithScores(ctx, r.key, 0, -1)
		}
	}); err != nil {
		return nil, err
	}
	n := int64(0)
	for _, r := range rs {
		n += r.want.count
	}
	es = make([]engine.Entry, 0, n)
	for _, r := range rs {
		var got part
		r.found = len(es)
		if es, got = appendEntries(es, r.z.Val()); got != r.want {
			w.log.Warn("Redis does not have what was put into a bucket; its minute is a gap until it is filled again",
				"bucket", r.key, "entries", got.count, "want", r.want.count)
			w.loseMinute(r.sh, m)
			gap = engine.ErrGap
		}
	}
	return es, gap
}

// readDefinitions adds the definitions of entries: ErrGap when Redis has lost a write.
func (w *Warm) readDefinitions(ctx context.Context, m int64, rs []*reading, es []engine.Entry) (gap error) {
	if err := w.ask(ctx, func(p goredis.Pipeliner) {
		for _, r := range rs {
			if r.sh.hours[m/hourMin] {
				for ids := range slices.Chunk(r.z.Val(), pageSize) {
					r.defs = append(r.defs, p.HMGet(ctx, r.sh.hourKey(m/hourMin), membersOf(ids)...))
				}
			}
			r.head = p.HMGet(ctx, manifestKey(r.sh.n), "run", "seq")
		}
	}); err != nil {
		return err
	}
	for _, r := range rs {
		if r.sh.run != "" && !r.sh.isAt(r.head.Val()) {
			w.lose(r.sh)
			gap = engine.ErrGap
			continue
		}
		at := r.found
		for _, d := range r.defs {
			for _, v := range d.Val() {
				if v, ok := v.(string); ok && len(v) > 4 {
					es[at].Definition = []byte(v[4:])
				}
				at++
			}
		}
	}
	return gap
}

// ask reads in one pipeline.
func (w *Warm) ask(ctx context.Context, what func(goredis.Pipeliner)) error {
	p := w.clients.Load().reads.Pipeline()
	what(p)
	_, err := p.Exec(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case isSilence(err):
		w.outage.begin()
	}
	return unavailable(err)
}

// isAt reports whether Redis has all that was acknowledged.
func (s *shard) isAt(head []any) bool {
	run, _ := head[0].(string)
	text, _ := head[1].(string)
	seq, err := strconv.ParseInt(text, 10, 64)
	return err == nil && run == s.run && seq >= s.acked && seq <= s.sent
}

// appendEntries weighs what was read.
func appendEntries(es []engine.Entry, zs []goredis.Z) ([]engine.Entry, part) {
	var got part
	for _, z := range zs {
		id, due := z.Member.(string), int64(z.Score)
		got.count++
		got.sum = (got.sum + weigh(id, due)) & sumMask
		es = append(es, engine.Entry{ID: engine.TimerID(binary.BigEndian.Uint64([]byte((id + "        ")[:8]))), Due: due})
	}
	return es, got
}

func membersOf(zs []goredis.Z) []string {
	ids := make([]string, len(zs))
	for i, z := range zs {
		ids[i] = z.Member.(string)
	}
	return ids
}

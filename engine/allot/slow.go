package allot

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
)

// Store has which calls of slow keys count (flow.Limit.IsSlow), see engine.Cold.
type Store interface {
	PutBuckets(ctx context.Context, bs []engine.Bucket) error
	Buckets(ctx context.Context, names []string) ([][]byte, error)
}

const (
	// slotWait is how long an ask may wait for those before it.
	slotWait = 3 * time.Second
	// keeps is for how long a bucket is kept of which no call counts.
	keeps = time.Hour
	// longestName is that of a bucket. No host has a longer one.
	longestName = 512
)

// graceOf is how much later than it was told a taker may ask again and not lose its turn.
func graceOf(l *flow.Limit) time.Duration {
	if l.IsSlow() {
		return grace + flow.StoredIn // it waits until the calls of another one are stored
	}
	return grace
}

// answerSlow grants what a life asks for where a key is slow: the owner reads what a former one
// has granted, after it has become the owner, and stores what it grants before it answers. If it
// owns the shard after that, the next owner will read it. What is stored too late is taken back in
// memory: who asked may have gone, and the calls would lapse. The next bucket that is stored tells of
// that; until then more calls count there than were made.
func (o *Owner) answerSlow(ctx context.Context, q *ask) answer {
	came := o.cfg.Now()
	select { // one at a time: the last bucket of a key that is stored has all of its calls
	case o.slow <- struct{}{}:
		defer func() { <-o.slow }()
	case <-time.After(slotWait):
		return elsewhere(q)
	case <-ctx.Done():
		return elsewhere(q)
	}
	ctx, cancel := context.WithTimeout(ctx, flow.StoredIn)
	defer cancel()
	err := o.restore(ctx, q)
	waited := o.cfg.Now() - came
	o.mu.Lock()
	earliest, latest, ok := o.cfg.Clock()
	var was []former
	var puts []engine.Bucket
	a := o.grantAll(q, func(b *book, n flow.Name, now time.Duration, grant func() keyAnswer) keyAnswer {
		if b.read != nil {
			b.slots.Restore(*b.read, now, earliest)
			b.read, b.known = nil, true
		}
		if !ok || !b.known {
			return keyAnswer{Elsewhere: true}
		}
		f := b.former()
		k := grant()
		if b.last != f.last {
			was, puts = append(was, f), append(puts, bucketOf(n, b, now, latest))
		}
		return k
	})
	o.mu.Unlock()
	if err == nil && len(puts) > 0 {
		if err = o.cfg.Store.PutBuckets(ctx, puts); err == nil {
			err = ctx.Err() // it is stored, but too late
		}
	}
	o.told(err)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		for _, f := range was {
			f.takeBack()
		}
		return elsewhere(q)
	}
	a.Waited = waited
	for i := range a.Keys {
		shard := Shard(q.Keys[i].name())
		if fence, owns := o.cfg.Owns(shard); !owns || fence != o.shards[shard].fence {
			a.Keys[i] = keyAnswer{Elsewhere: true}
		}
	}
	return a
}

// elsewhere grants nothing that an ask is for.
func elsewhere(q *ask) (a answer) {
	for range q.Keys {
		a.Keys = append(a.Keys, keyAnswer{Elsewhere: true})
	}
	return a
}

// restore reads what is stored of the keys that this node knows nothing of.
func (o *Owner) restore(ctx context.Context, q *ask) error {
	o.mu.Lock()
	now := o.cfg.Now()
	o.look(now)
	var names []string
	var books []*book
	for i := range q.Keys {
		n := q.Keys[i].name()
		if b, l := o.book(n, now); b != nil && l.IsSlow() && !b.known {
			names, books = append(names, bucketName(n)), append(books, b)
		}
	}
	o.mu.Unlock()
	if len(names) == 0 {
		return nil
	}
	bodies, err := o.cfg.Store.Buckets(ctx, names)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, b := range books {
		b.read = &flow.Kept{}
		if bodies[i] != nil {
			if err := json.Unmarshal(bodies[i], b.read); err != nil {
				o.cfg.Log.Error("what is stored of the calls of a flow key is damaged; none of them counts", "key", names[i], "error", err)
			}
		}
	}
	return nil
}

// former is a book before calls were granted.
type former struct {
	b      *book
	slots  flow.Slots
	limit  flow.Limit
	last   uint64
	takers map[uint64]taker // those that were granted calls, and have not been told yet
}

func (b *book) former() former {
	f := former{b, b.slots.Clone(), b.limit, b.last, map[uint64]taker{}}
	for life, t := range b.takers {
		if len(t.runs) > 0 {
			f.takers[life] = taker{runs: slices.Clone(t.runs), places: t.places}
		}
	}
	return f
}

// takeBack takes back what was granted since: it could not be stored, and no node is told of it. What
// was granted and stored before still waits for its nodes.
func (f *former) takeBack() {
	b := f.b
	if b.limit != f.limit {
		return // that took everything back
	}
	b.slots, b.last = f.slots, f.last
	for life, t := range b.takers {
		t.drop()
		w := f.takers[life]
		t.runs, t.places, t.holds = w.runs, w.places, t.holds+w.places
	}
}

// told logs the first of errors of the store.
func (o *Owner) told(err error) {
	if err != nil && !o.trouble {
		o.cfg.Log.Error("cannot store the calls of flow keys whose limit is for more than a minute; these calls wait until it can be stored", "error", err)
	}
	o.trouble = err != nil
}

func bucketName(n flow.Name) string {
	name := string(rune('0'+n.Kind)) + n.App + "\x00" + n.Key
	return name[:min(len(name), longestName)]
}

func bucketOf(n flow.Name, b *book, now time.Duration, latest int64) engine.Bucket {
	k := b.slots.Keep(now, latest)
	return engine.Bucket{
		Name: bucketName(n), Fence: b.fence, Until: latest + (b.limit.Per + keeps).Milliseconds(),
		Body: encode(k),
	}
}

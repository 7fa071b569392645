package redis

import (
	"bytes"
	"context"

	goredis "github.com/redis/go-redis/v9"

	"xtimer/engine"
)

// Add puts entries into their buckets, and their definitions beside them, once
// an hour and timer. After an error the minutes of the entries are gaps, in their shards.
func (w *Warm) Add(ctx context.Context, es []engine.Entry) error {
	err := w.add(ctx, es)
	if err != nil {
		for _, e := range es {
			w.unseal(e.ID.Shard(), e.Due/minuteMs)
		}
	}
	return err
}

func (w *Warm) add(ctx context.Context, es []engine.Entry) error {
	var byShard [engine.Shards][]engine.Entry
	for _, e := range es {
		n := e.ID.Shard()
		byShard[n] = append(byShard[n], e)
	}
	var adds []*addition
	var calls []*call
	for left := len(es); left > 0; { // in rounds: a pipeline has each shard once
		for n, sh := range w.shards {
			part := byShard[n][:min(perCall, len(byShard[n]))]
			if len(part) == 0 {
				continue
			}
			byShard[n] = byShard[n][len(part):]
			left -= len(part)
			a := &addition{w: w, sh: sh, es: part}
			if err := a.readDefinitions(); err != nil {
				return err
			}
			adds = append(adds, a)
			calls = append(calls, &call{change: a, sh: sh, size: len(part)})
		}
	}
	if err := w.write(ctx, calls); err != nil {
		return err
	}
	calls = calls[:0]
	for _, a := range adds {
		for _, m := range a.grown {
			calls = append(calls, &call{change: &splitting{w: w, sh: a.sh, minute: m}, sh: a.sh, size: bucketSize})
		}
	}
	return w.write(ctx, calls)
}

// addition is a part of an Add: entries of one shard.
type addition struct {
	w       *Warm
	sh      *shard
	es      []engine.Entry
	defs    []kept
	buckets []bucketOf
	grown   []int64 // minutes that need one more bucket
}

// bucketOf is a bucket with the entries that go into it.
type bucketOf struct {
	minute int64
	k      int
	es     []engine.Entry
}

// kept is a definition as Redis keeps it.
type kept struct {
	id      engine.TimerID
	hour    int64
	version uint32
	value   string
}

func (a *addition) readDefinitions() error {
	var last engine.Entry
	for _, e := range a.es {
		hour := e.Due / minuteMs / hourMin
		if e.Definition == nil || e.ID == last.ID && hour == last.Due/minuteMs/hourMin && bytes.Equal(e.Definition, last.Definition) {
			continue
		}
		value, version, err := versioned(e.Definition)
		if err != nil {
			return err
		}
		a.defs, last = append(a.defs, kept{e.ID, hour, version, value}), e
	}
	return nil
}

func (a *addition) build() (script *goredis.Script, keys []string, args []any, ok bool) {
	a.buckets = a.buckets[:0]
	a.choose()
	sh := a.sh
	byHour := map[int64][]kept{}
	for _, d := range a.defs {
		if !sh.updated.newer(d.id, d.version) {
			byHour[d.hour] = append(byHour[d.hour], d)
		}
	}
	args = append(args, len(a.buckets), len(byHour))
	for _, b := range a.buckets {
		end := (b.minute + 1) * minuteMs
		sh.until = max(sh.until, end)
		known := sh.buckets[b.minute].parts[b.k]
		keys = append(keys, sh.bucketKey(b.minute, b.k))
		args = append(args, bucketField(b.minute, b.k), secondsLeft(end), known.count, known.sum, len(b.es))
		for _, e := range b.es {
			id := member(e.ID)
			args = append(args, id, e.Due, weigh(id, e.Due))
		}
	}
	for h, ds := range byHour {
		isNew := 1
		if sh.hours[h] {
			isNew = 0
		}
		sh.hours[h] = true
		keys = append(keys, sh.hourKey(h))
		args = append(args, secondsLeft((h+1)*hourMin*minuteMs), isNew, len(ds))
		for _, d := range ds {
			args = append(args, member(d.id), d.value)
		}
	}
	return addScript, keys, args, true
}

// choose finds the bucket of each entry.
func (a *addition) choose() {
	at := map[[2]int64]int{}
	for _, e := range a.es {
		m := e.Due / minuteMs
		b := a.sh.buckets[m]
		if b == nil {
			b = &minuteBuckets{parts: make([]part, 1)}
			a.sh.buckets[m] = b
		}
		k := partOf(member(e.ID), len(b.parts))
		i, ok := at[[2]int64{m, int64(k)}]
		if !ok {
			b.seals = a.w.sealCount()
			i = len(a.buckets)
			at[[2]int64{m, int64(k)}] = i
			a.buckets = append(a.buckets, bucketOf{minute: m, k: k})
		}
		a.buckets[i].es = append(a.buckets[i].es, e)
	}
}

func (a *addition) adopt(reply []any) {
	for i, b := range a.buckets {
		mb := a.sh.buckets[b.minute]
		now := part{reply[2*i].(int64), reply[2*i+1].(int64)}
		a.w.entries.Add(now.count - mb.parts[b.k].count)
		mb.parts[b.k] = now
		if mb.isFull() {
			a.grown = append(a.grown, b.minute)
		}
	}
}

func (a *addition) fail(sent bool) {
	if !sent {
		return
	}
	for _, b := range a.buckets {
		a.w.loseMinute(a.sh, b.minute)
	}
	for _, d := range a.defs {
		delete(a.sh.hours, d.hour)
	}
}

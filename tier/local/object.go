package local

import (
	"context"
	"encoding/binary"
	"slices"

	"xtimer/engine"
)

// PutObjects stores objects, each in place of the version Was: all of them or none.
func (s *Store) PutObjects(ctx context.Context, puts ...engine.ObjectPut) error {
	rows, weight := make([][]byte, len(puts)), 0
	for i, p := range puts {
		rows[i] = engine.AppendObject(nil, p.Object)
		weight += 1 + len(rows[i])/changeBytes
	}
	return s.do(ctx, weight, func(g *group) error {
		for _, p := range puts {
			stands, err := g.object(p.ObjectKey)
			if err == nil {
				_, err = engine.JudgePut(p, stands)
			}
			if err != nil {
				return err
			}
		}
		for i, p := range puts {
			g.objects[p.ObjectKey] = rows[i]
			g.put(objectKey(nil, p.ObjectKey), rows[i])
		}
		return nil
	})
}

// DeleteObjects deletes these versions of objects: all of them or none.
func (s *Store) DeleteObjects(ctx context.Context, of ...*engine.Object) error {
	return s.do(ctx, len(of), func(g *group) error {
		var stand []engine.ObjectKey
		for _, o := range of {
			stands, err := g.object(o.ObjectKey)
			if err != nil {
				return err
			}
			done, err := engine.JudgeDelete(stands, o.Version)
			if err != nil {
				return err
			}
			if !done {
				stand = append(stand, o.ObjectKey)
			}
		}
		for _, k := range stand {
			g.objects[k] = nil
			g.delete(objectKey(nil, k))
		}
		return nil
	})
}

// object returns an object as it stands, or nil.
func (g *group) object(k engine.ObjectKey) (*engine.Object, error) {
	row, ok := g.objects[k]
	if !ok {
		g.probe = objectKey(g.probe[:0], k)
		var err error
		if row, err = g.get(g.probe); err != nil {
			return nil, err
		}
	}
	if row == nil {
		return nil, nil
	}
	o := engine.ReadObject(k, row)
	return &o, nil
}

// objectPage is how many objects Objects hands on at a time.
const objectPage = 1000

// Objects pages through all objects in the order of their keys.
func (s *Store) Objects(ctx context.Context, yield func([]engine.Object) error) error {
	w, err := s.views.acquire()
	if err != nil {
		return err
	}
	defer s.views.release(w)
	var page []engine.Object
	err = scan(w, []byte{kindObject}, []byte{kindObject + 1}, func(k, v []byte) (bool, error) {
		key, ok := readObjectKey(k)
		if !ok {
			return false, damaged(k, errKey)
		}
		page = append(page, engine.ReadObject(key, slices.Clone(v)))
		if len(page) < objectPage {
			return true, nil
		}
		err := yield(page)
		page = page[:0]
		return true, err
	})
	if err == nil {
		err = ctx.Err()
	}
	if err == nil && len(page) > 0 {
		err = yield(page)
	}
	return err
}

func bucketKey(name string) []byte { return append([]byte{kindBucket}, name...) }

func appendBucket(b []byte, x *engine.Bucket) []byte {
	b = binary.AppendUvarint(appendTime(append(b, valueVersion), x.Until), x.Fence)
	return append(b, x.Body...)
}

// readBucket reads what appendBucket wrote; the body is part of v.
func readBucket(v []byte) (x engine.Bucket, ok bool) {
	if len(v) < 7 || v[0] != valueVersion {
		return x, false
	}
	var n int
	x.Until = readTime(v[1:])
	x.Fence, n = binary.Uvarint(v[7:])
	if n <= 0 {
		return x, false
	}
	x.Body = v[7+n:]
	return x, true
}

// PutBuckets stores buckets, except those that stand under a greater fence. A damaged one is
// replaced.
func (s *Store) PutBuckets(ctx context.Context, bs []engine.Bucket) error {
	return s.do(ctx, len(bs), func(g *group) error {
		for i := range bs {
			key := bucketKey(bs[i].Name)
			v, err := g.bucket(key)
			if err != nil {
				return err
			}
			if x, ok := readBucket(v); !ok || x.Fence <= bs[i].Fence {
				g.put(key, appendBucket(nil, &bs[i]))
			}
		}
		return nil
	})
}

// Buckets reads the bodies of buckets.
func (s *Store) Buckets(_ context.Context, names []string) ([][]byte, error) {
	w, err := s.views.acquire()
	if err != nil {
		return nil, err
	}
	defer s.views.release(w)
	bodies := make([][]byte, len(names))
	for i, n := range names {
		key := bucketKey(n)
		v, err := w.get(key)
		if err != nil {
			return nil, err
		}
		x, ok := readBucket(v)
		if v != nil && !ok {
			return nil, damaged(key, errShort)
		}
		bodies[i] = x.Body
	}
	return bodies, nil
}

// forgetBuckets removes the buckets whose time is over, and damaged ones. A call looks at the
// next ones of all: nothing is in the order of their times.
func (s *Store) forgetBuckets(ctx context.Context, now int64) (more bool, err error) {
	from := []byte{kindBucket}
	if s.sweep.buckets != nil {
		from = append(s.sweep.buckets, 0)
	}
	ks, more, err := s.keys(from, []byte{kindBucket + 1}, sweepPiece)
	if err != nil {
		return false, err
	}
	if s.sweep.buckets = nil; more {
		s.sweep.buckets = ks[len(ks)-1]
	}
	if len(ks) == 0 {
		return false, nil
	}
	return more, s.do(ctx, len(ks), func(g *group) error {
		for _, k := range ks {
			v, err := g.bucket(k)
			if err != nil {
				return err
			}
			if x, ok := readBucket(v); v != nil && (!ok || x.Until <= now) {
				g.delete(slices.Clone(k))
			}
		}
		return nil
	})
}

// bucket is a stored bucket as the group leaves it.
func (g *group) bucket(key []byte) ([]byte, error) {
	for _, w := range slices.Backward(g.writes[kindBucket]) {
		if compare(w.key, key) == 0 {
			return w.val, nil
		}
	}
	return g.look(key)
}

package object

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"xtimer/engine"
)

// Item is one of many puts.
type Item struct {
	Key  engine.ObjectKey
	Body []byte
	// Keep, if set, returns the body with what it keeps of what stands when the put is made; it
	// is not asked if nothing does.
	Keep func(stands *engine.Object, body []byte) ([]byte, error)
}

// body is what is stored where an object stands, nil if none does.
func (x *Item) body(stands *engine.Object, body []byte) ([]byte, error) {
	if x.Keep == nil || stands == nil {
		return body, nil
	}
	return x.Keep(stands, body)
}

// Bounds of what PutAll and DeleteAll write at a time: other writes wait for that.
const (
	mostItems = 250
	mostBytes = 512 << 10
)

// PutAll stores objects of different keys, hundreds at a time, for a program that makes many:
// their kinds are uncounted, and have no Check. It returns an error for each, nil if it is
// stored.
func (s *Set) PutAll(ctx context.Context, items []Item) []error {
	errs := make([]error, len(items))
	for from := 0; from < len(items); {
		n, size := 0, 0
		for ; from+n < len(items) && n < mostItems && (n == 0 || size+len(items[from+n].Body) <= mostBytes); n++ {
			size += len(items[from+n].Body)
		}
		piece := items[from : from+n]
		err := s.putPiece(ctx, piece)
		for i := range piece {
			if errs[from+i] = err; errors.Is(err, engine.ErrConflict) {
				_, _, errs[from+i] = s.Write(ctx, Write{Key: piece[i].Key, Body: piece[i].Body, Keep: piece[i].body})
			}
		}
		from += n
	}
	return errs
}

// putPiece stores all of the items, or none.
func (s *Set) putPiece(ctx context.Context, items []Item) error {
	s.writes <- struct{}{}
	defer func() { <-s.writes }()
	if !s.loaded {
		return errNotLoaded
	}
	var puts []engine.ObjectPut
	for _, x := range items {
		if len(x.Body) > MaxBody {
			return errTooLarge
		}
		stands := s.Get(x.Key)
		body, err := x.body(stands, x.Body)
		if err != nil {
			return err
		}
		if stands == nil || !bytes.Equal(stands.Body, body) {
			puts = append(puts, s.next(ctx, x.Key, body, stands))
		}
	}
	if len(puts) == 0 {
		return nil
	}
	if err := s.store.PutObjects(ctx, puts...); err != nil {
		if !errors.Is(err, engine.ErrConflict) {
			s.doubt(err)
		}
		return err
	}
	for _, p := range puts {
		s.replace(p.ObjectKey, p.Object)
		s.changed(p.ObjectKey)
	}
	return nil
}

// DeleteAll deletes objects of different keys, hundreds at a time, of kinds that PutAll may write. Those that are not
// there are left out. It ends with the first error.
func (s *Set) DeleteAll(ctx context.Context, keys []engine.ObjectKey) error {
	for piece := range slices.Chunk(keys, mostItems) {
		if err := s.write(ctx, func() error { return s.deleteAll(ctx, piece) }); err != nil {
			return err
		}
	}
	return nil
}

// deleteAll deletes all of the objects, or none. Writes is held.
func (s *Set) deleteAll(ctx context.Context, keys []engine.ObjectKey) error {
	var of []*engine.Object
	for _, k := range keys {
		if o := s.Get(k); o != nil {
			of = append(of, o)
		}
	}
	if len(of) == 0 {
		return nil
	}
	if err := s.store.DeleteObjects(ctx, of...); err != nil {
		return err
	}
	for _, o := range of {
		s.replace(o.ObjectKey, nil)
		s.changed(o.ObjectKey)
	}
	return nil
}

package local

import (
	"context"
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

// DeleteObject deletes the version was of an object.
func (s *Store) DeleteObject(ctx context.Context, k engine.ObjectKey, was uint32) error {
	return s.do(ctx, 1, func(g *group) error {
		stands, err := g.object(k)
		if err != nil {
			return err
		}
		if done, err := engine.JudgeDelete(stands, was); done || err != nil {
			return err
		}
		g.objects[k] = nil
		g.delete(objectKey(nil, k))
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

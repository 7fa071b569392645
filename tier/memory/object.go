package memory

import (
	"context"
	"maps"
	"slices"

	"xtimer/engine"
)

var _ engine.Revised = (*Cold)(nil)

// PutObjects stores objects, each in place of the version Was: all of them or none.
func (c *Cold) PutObjects(_ context.Context, puts ...engine.ObjectPut) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	stored := true
	for _, p := range puts {
		done, err := engine.JudgePut(p, c.object(p.ObjectKey))
		if err != nil {
			return err
		}
		stored = stored && done
	}
	if stored {
		return nil
	}
	for _, p := range puts {
		c.objects[p.ObjectKey] = *p.Object
	}
	c.revised++
	return nil
}

// DeleteObjects deletes these versions of objects: all of them or none.
func (c *Cold) DeleteObjects(_ context.Context, of ...*engine.Object) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	deleted := true
	for _, o := range of {
		done, err := engine.JudgeDelete(c.object(o.ObjectKey), o.Version)
		if err != nil {
			return err
		}
		deleted = deleted && done
	}
	if deleted {
		return nil
	}
	for _, o := range of {
		delete(c.objects, o.ObjectKey)
	}
	c.revised++
	return nil
}

// ObjectsRevision grows with each change of an object.
func (c *Cold) ObjectsRevision(context.Context) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.revised, nil
}

func (c *Cold) object(k engine.ObjectKey) *engine.Object {
	if o, ok := c.objects[k]; ok {
		return &o
	}
	return nil
}

// Objects gives all objects, in the order of their keys.
func (c *Cold) Objects(_ context.Context, yield func([]engine.Object) error) error {
	c.mu.Lock()
	all := slices.SortedFunc(maps.Values(c.objects), func(a, b engine.Object) int { return a.Compare(b.ObjectKey) })
	c.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	return yield(all)
}

package memory

import (
	"bytes"
	"context"

	"xtimer/engine"
)

// PutBuckets stores buckets, except those that stand under a greater fence.
func (c *Cold) PutBuckets(_ context.Context, bs []engine.Bucket) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range bs {
		if c.buckets[b.Name].Fence <= b.Fence {
			b.Body = bytes.Clone(b.Body)
			c.buckets[b.Name] = b
		}
	}
	return nil
}

// Buckets reads the bodies of buckets.
func (c *Cold) Buckets(_ context.Context, names []string) ([][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	bodies := make([][]byte, len(names))
	for i, n := range names {
		bodies[i] = bytes.Clone(c.buckets[n].Body)
	}
	return bodies, nil
}

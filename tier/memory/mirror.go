package memory

import (
	"bytes"
	"context"
	"sync"

	"xtimer/engine"
)

var _ engine.Mirror = (*Mirror)(nil)

// Mirror is that of many engines in one process.
type Mirror struct {
	mu    sync.Mutex
	lives map[uint64][]engine.MirrorGroup // guarded by mu
}

// NewMirror builds a mirror without lives.
func NewMirror() *Mirror { return &Mirror{lives: map[uint64][]engine.MirrorGroup{}} }

// Append adds groups to those of a life.
func (m *Mirror) Append(_ context.Context, life uint64, groups []engine.MirrorGroup, first, last uint64) (whole bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.lives[life]
	if first > last || len(groups) > 0 && groups[0].N == first {
		all = nil
	}
	for _, g := range groups {
		if len(all) > 0 && g.N <= all[len(all)-1].N {
			continue
		}
		all = append(all, engine.MirrorGroup{N: g.N, Tasks: cloned(g.Tasks)})
	}
	for len(all) > 0 && all[0].N < first {
		all = all[1:]
	}
	m.lives[life] = all
	for _, g := range all {
		if g.N == first {
			first++
		}
	}
	return first > last, nil
}

// Read yields the tasks of a life.
func (m *Mirror) Read(_ context.Context, life uint64, yield func(task []byte) error) error {
	m.mu.Lock()
	groups := m.lives[life]
	m.mu.Unlock()
	for _, g := range groups {
		for _, t := range cloned(g.Tasks) {
			if err := yield(t); err != nil {
				return err
			}
		}
	}
	return nil
}

func cloned(tasks [][]byte) [][]byte {
	all := make([][]byte, len(tasks))
	for i := range tasks {
		all[i] = bytes.Clone(tasks[i])
	}
	return all
}

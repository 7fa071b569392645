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
func (m *Mirror) Append(_ context.Context, life uint64, groups []engine.MirrorGroup, keep int) (has int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.lives[life]
	if len(groups) == keep {
		all = nil
	}
	for _, g := range groups {
		if len(all) > 0 && g.N <= all[len(all)-1].N {
			continue
		}
		all = append(all, engine.MirrorGroup{N: g.N, Tasks: cloned(g.Tasks)})
	}
	all = all[max(0, len(all)-keep):]
	m.lives[life] = all
	return len(all), nil
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

package resident

import (
	"maps"
	"testing"

	"xtimer/engine"

	"pgregory.net/rapid"
)

// TestIndex: it does what a map does.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Index
		m := map[engine.Key]*Task{}
		keys := rapid.Custom(func(t *rapid.T) engine.Key {
			return engine.Key{Timer: engine.TimerID(rapid.Uint64Range(1, 40).Draw(t, "timer")), Due: 10 * rapid.Int64Range(0, 40).Draw(t, "due")}
		})
		for range rapid.IntRange(0, 400).Draw(t, "steps") {
			k := keys.Draw(t, "key")
			switch has := m[k]; {
			case x.find(k) != has:
				t.Fatalf("%v: %p, want %p", k, x.find(k), has)
			case has == nil:
				tk := &Task{}
				tk.Key = k
				x.remove(tk) // which is not there
				x.put(tk)
				m[k] = tk
			case rapid.Bool().Draw(t, "remove"):
				other := &Task{}
				other.Key = k
				x.remove(other) // has its key, and is not there
				x.remove(has)
				delete(m, k)
			}
			all := map[engine.Key]*Task{}
			for tk := range x.all {
				all[tk.Key] = tk
			}
			if !maps.Equal(all, m) || x.Len != len(m) {
				t.Fatalf("%d tasks, want %d", len(all), len(m))
			}
		}
	})
}

// BenchmarkIndex is a backlog of a shard that tasks come to and leave, beside Go's
// map, which no cache holds either: there are 256 of each.
func BenchmarkIndex(b *testing.B) {
	const shards, backlog = 256, 800
	tasks := make([]Task, shards*backlog)
	for i := range tasks {
		tasks[i].Key = engine.Key{Timer: engine.TimerID(7354000000000000 + i%(3*shards)), Due: int64(1763658000000 + i/(3*shards)*10)}
	}
	b.Run("index", func(b *testing.B) {
		x := make([]Index, shards)
		for i := range tasks {
			x[i%shards].put(&tasks[i])
		}
		for i := 0; b.Loop(); i++ {
			at := i % len(tasks)
			t := &tasks[at]
			x[at%shards].remove(t)
			t.Key.Due += 1 << 20
			x[at%shards].put(t)
		}
	})
	b.Run("map", func(b *testing.B) {
		m := make([]map[engine.Key]*Task, shards)
		for i := range m {
			m[i] = map[engine.Key]*Task{}
		}
		for i := range tasks {
			m[i%shards][tasks[i].Key] = &tasks[i]
		}
		for i := 0; b.Loop(); i++ {
			at := i % len(tasks)
			t := &tasks[at]
			delete(m[at%shards], t.Key)
			t.Key.Due += 1 << 20
			m[at%shards][t.Key] = t
		}
	})
}

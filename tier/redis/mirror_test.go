package redis

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"xtimer/engine"
	"xtimer/tier/servertest"
	"xtimer/tier/tiertest"
)

func TestMirror(t *testing.T) {
	s := servertest.Redis(t)
	tiertest.Mirror(t, func(t *testing.T) engine.Mirror {
		s.Do("FLUSHALL")
		return open(t, s.Addr()).Mirror()
	})
}

func TestMirrorOnACluster(t *testing.T) {
	var addrs []string
	for _, s := range servertest.RedisCluster(t) {
		addrs = append(addrs, s.Addr())
	}
	life := uint64(0)
	tiertest.Mirror(t, func(t *testing.T) engine.Mirror {
		life += 100
		return livesFrom{open(t, addrs...).Mirror(), life}
	})
}

// livesFrom is a mirror whose lives nobody has used before.
type livesFrom struct {
	*Mirror
	from uint64
}

func (m livesFrom) Append(ctx context.Context, life uint64, groups []engine.MirrorGroup, first, last uint64) (whole bool, err error) {
	return m.Mirror.Append(ctx, m.from+life, groups, first, last)
}

func (m livesFrom) Read(ctx context.Context, life uint64, yield func([]byte) error) error {
	return m.Mirror.Read(ctx, m.from+life, yield)
}

// groups are those with the numbers from…to, of two tasks each.
func groups(from, to uint64) (gs []engine.MirrorGroup) {
	for n := from; n <= to; n++ {
		gs = append(gs, engine.MirrorGroup{N: n, Tasks: [][]byte{fmt.Append(nil, n, "a"), fmt.Append(nil, n, "b")}})
	}
	return gs
}

// appends appends groups, the last of them the newest, and drops those before first.
func appends(t testing.TB, m *Mirror, life uint64, gs []engine.MirrorGroup, first uint64) {
	t.Helper()
	_, err := m.Append(t.Context(), life, gs, first, gs[len(gs)-1].N)
	must(t, err)
}

// mirrors fails unless the mirror of a life has these groups.
func mirrors(t testing.TB, m *Mirror, life uint64, want ...engine.MirrorGroup) {
	t.Helper()
	var tasks, got []string
	for _, g := range want {
		tasks = append(tasks, string(g.Tasks[0]), string(g.Tasks[1]))
	}
	must(t, m.Read(t.Context(), life, func(b []byte) error {
		got = append(got, string(b))
		return nil
	}))
	if !slices.Equal(got, tasks) {
		t.Errorf("life %x has %q, want %q", life, got, tasks)
	}
}

// Whatever is taken from a mirror, what is left is told, and nothing else.
func TestMirrorLosses(t *testing.T) {
	s := servertest.Redis(t)
	c := dial(t, s.Addr())
	m := open(t, s.Addr()).Mirror()
	all := groups(1, 40)
	add := func(id string, value any) error {
		return c.XAdd(t.Context(), &goredis.XAddArgs{Stream: mirrorKey(7), ID: id, Values: []any{groupField, value}}).Err()
	}
	for _, l := range []struct {
		name string
		take func() error
		left []engine.MirrorGroup
	}{
		{"nothing", func() error { return nil }, all},
		{"everything", func() error { return c.FlushAll(t.Context()).Err() }, nil},
		{"a group", func() error { return c.XDel(t.Context(), mirrorKey(7), "20-0").Err() }, slices.Concat(all[:19], all[20:])},
		{"the old ones", func() error { return c.XTrimMaxLen(t.Context(), mirrorKey(7), 5).Err() }, all[35:]},
		{"a stranger's entry", func() error {
			return c.XAdd(t.Context(), &goredis.XAddArgs{Stream: mirrorKey(7), ID: "41-0", Values: []any{"x", "y"}}).Err()
		}, all},
		{"a bit", func() error {
			b := appendGroup(nil, 7, &groups(41, 41)[0])
			b[5] ^= 1
			return add("41-0", b)
		}, all},
		{"the end", func() error {
			b := appendGroup(nil, 7, &groups(41, 41)[0])
			return add("41-0", b[:len(b)-6])
		}, all},
		{"the right number", func() error { return add("42-0", appendGroup(nil, 7, &groups(41, 41)[0])) }, all},
		{"the right life", func() error { return add("41-0", appendGroup(nil, 8, &groups(41, 41)[0])) }, all},
	} {
		t.Run(l.name, func(t *testing.T) {
			must(t, c.FlushAll(t.Context()).Err())
			appends(t, m, 7, all, 1)
			must(t, l.take())
			mirrors(t, m, 7, l.left...)
			appends(t, m, 7, groups(43, 43), 1)
			mirrors(t, m, 7, slices.Concat(l.left, groups(43, 43))...)
		})
	}
}

// A mirror takes no more keys than lives, and they end by themselves.
func TestMirrorEnds(t *testing.T) {
	s := servertest.Redis(t)
	c := dial(t, s.Addr())
	m := open(t, s.Addr()).Mirror()
	appends(t, m, 1<<64-1, groups(1, 3), 1)
	if keys := c.Keys(t.Context(), "*").Val(); len(keys) != 1 || keys[0] != "xt:{jffffffffffffffff}" {
		t.Fatalf("keys %q", keys)
	}
	if ttl := c.TTL(t.Context(), mirrorKey(1<<64-1)).Val(); ttl < mirrorKept-time.Minute || ttl > mirrorKept {
		t.Errorf("it ends in %v", ttl)
	}
	m.kept = time.Millisecond
	appends(t, m, 1<<64-1, groups(4, 4), 2)
	await(t, "the key ends", func() bool { return len(c.Keys(t.Context(), "*").Val()) == 0 })
}

// While Redis is away or full a mirror fails, soon, and goes on afterwards.
func TestMirrorOutages(t *testing.T) {
	s := servertest.Redis(t, "--maxmemory", "0")
	c := dial(t, s.Addr())
	p := servertest.NewProxy(t, s.Addr())
	for i, o := range []struct {
		name       string
		begin, end func()
	}{
		{"refused", p.Cut, p.Heal},
		{"silent", p.Hang, p.Heal},
		{"full", func() { must(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err()) }, func() { must(t, c.ConfigSet(t.Context(), "maxmemory", "0").Err()) }},
	} {
		t.Run(o.name, func(t *testing.T) {
			w := open(t, p.Addr())
			m, life := w.Mirror(), uint64(i)
			appends(t, m, life, groups(1, 2), 1)
			o.begin()
			w.patience = time.Second
			began := time.Now()
			if _, err := m.Append(t.Context(), life, groups(3, 4), 1, 4); !errors.Is(err, engine.ErrUnavailable) {
				t.Errorf("Append: %v", err)
			}
			if err := m.Read(t.Context(), life, func([]byte) error { return nil }); !errors.Is(err, engine.ErrUnavailable) && o.name != "full" {
				t.Errorf("Read: %v", err)
			}
			if took := time.Since(began); took > 20*time.Second { // of a busy machine
				t.Errorf("they took %v", took)
			}
			o.end()
			w.patience = 2 * time.Minute
			await(t, "it takes groups", func() bool {
				_, err := m.Append(t.Context(), life, groups(3, 5), 2, 5)
				return err == nil
			})
			mirrors(t, m, life, groups(2, 5)...)
		})
	}
}

// What is settled leaves the mirror on a Redis that is full, too, which makes room.
func TestMirrorShrinksOnAFullServer(t *testing.T) {
	s := servertest.Redis(t, "--maxmemory-policy", "noeviction")
	m := open(t, s.Addr()).Mirror()
	c := dial(t, s.Addr())
	appends(t, m, 7, groups(1, 50), 1)
	must(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
	for _, x := range []struct {
		groups []engine.MirrorGroup // all that are to be there, as after a failure
		left   []engine.MirrorGroup
	}{{groups(41, 51), groups(41, 50)}, {groups(51, 51), nil}, {groups(52, 52), nil}} {
		if _, err := m.Append(t.Context(), 7, x.groups, x.groups[0].N, x.groups[len(x.groups)-1].N); !errors.Is(err, engine.ErrUnavailable) {
			t.Fatal(err)
		}
		mirrors(t, m, 7, x.left...)
	}
}

// FuzzGroup: whatever a key has, a group is read as it was written, or not at all.
func FuzzGroup(f *testing.F) {
	f.Add([]byte("a task"), []byte{}, appendGroup(nil, 7, &engine.MirrorGroup{N: 3, Tasks: [][]byte{{1}, nil}}))
	f.Add([]byte{}, []byte("another"), []byte{groupVersion, 255, 255, 255, 255, 15})
	f.Fuzz(func(t *testing.T, one, two, other []byte) {
		g := engine.MirrorGroup{N: 3, Tasks: [][]byte{one, two}}
		b := appendGroup(nil, 7, &g)
		got, err := readGroup(7, 3, b)
		if err != nil || len(got) != 2 || !bytes.Equal(got[0], one) || !bytes.Equal(got[1], two) {
			t.Fatalf("%q reads as %q, %v", g.Tasks, got, err)
		}
		if tasks, err := readGroup(7, 3, other); err == nil && !bytes.Equal(appendGroup(nil, 7, &engine.MirrorGroup{N: 3, Tasks: tasks}), other) {
			t.Fatalf("%x reads as %q", other, tasks)
		}
		// The same frame with a right checksum: no panic, whatever the lengths say.
		_, _ = readGroup(7, 3, binary.LittleEndian.AppendUint32(bytes.Clone(other), groupSum(7, 3, other)))
	})
}

package tiertest

import (
	"fmt"
	"slices"
	"testing"

	"xtimer/engine"
)

// Mirror runs the promises of a mirror. make builds a new, empty one.
func Mirror(t *testing.T, make func(t *testing.T) engine.Mirror) {
	for _, p := range []struct {
		name string
		run  func(m *mirror)
	}{
		{"what a life appended is read, in order", mirrorReads},
		{"a group that is appended twice is there once", mirrorTwice},
		{"what is settled goes", mirrorKeeps},
		{"what is lost is told of, and replaced", mirrorReplaces},
		{"an older copy is told of", mirrorOld},
		{"many large groups are read", mirrorMany},
	} {
		t.Run(p.name, func(t *testing.T) { p.run(&mirror{t, make(t)}) })
	}
}

type mirror struct {
	*testing.T
	engine.Mirror
}

func (m *mirror) add(life, first, last uint64, groups ...engine.MirrorGroup) {
	m.Helper()
	if _, err := m.Append(m.Context(), life, groups, first, last); err != nil {
		m.Fatal(err)
	}
}

func (m *mirror) want(life uint64, tasks ...string) {
	m.Helper()
	var got []string
	err := m.Read(m.Context(), life, func(task []byte) error {
		got = append(got, string(task))
		return nil
	})
	if err != nil || !slices.Equal(got, tasks) {
		m.Fatalf("life %d has %q, %v; want %q", life, got, err, tasks)
	}
}

func mirrored(n uint64, tasks ...string) engine.MirrorGroup {
	g := engine.MirrorGroup{N: n}
	for _, t := range tasks {
		g.Tasks = append(g.Tasks, []byte(t))
	}
	return g
}

func mirrorReads(m *mirror) {
	m.want(7)
	m.add(7, 1, 2, mirrored(1, "a", "", "b"), mirrored(2, "c"))
	m.add(8, 1, 1, mirrored(1, "other"))
	m.add(7, 1, 3, mirrored(3, "d\x00\xff"))
	m.want(7, "a", "", "b", "c", "d\x00\xff")
	m.want(8, "other")
	m.want(9)
	stop := fmt.Errorf("enough")
	n := 0
	if err := m.Read(m.Context(), 7, func([]byte) error { n++; return stop }); err != stop || n != 1 {
		m.Errorf("a read that was told to stop returns %v after %d tasks", err, n)
	}
}

func mirrorTwice(m *mirror) {
	m.add(7, 1, 2, mirrored(1, "a"), mirrored(2, "b"))
	m.add(7, 1, 3, mirrored(2, "b"), mirrored(3, "c"))
	m.want(7, "a", "b", "c")
}

func mirrorKeeps(m *mirror) {
	m.add(7, 2, 3, mirrored(1, "a"), mirrored(2, "b"), mirrored(3, "c"))
	m.want(7, "b", "c")
	m.add(7, 3, 3)
	m.want(7, "c")
	m.add(7, 4, 3)
	m.want(7)
	m.add(7, 4, 4, mirrored(4, "d"))
	m.want(7, "d")
}

func mirrorReplaces(m *mirror) {
	for _, x := range []struct {
		groups      []engine.MirrorGroup
		first, last uint64
		whole       bool
		want        []string
	}{
		{[]engine.MirrorGroup{mirrored(3, "c"), mirrored(4, "d")}, 1, 4, false, []string{"c", "d"}}, // 1 and 2 are not there
		{[]engine.MirrorGroup{mirrored(1, "a"), mirrored(2, "b"), mirrored(3, "c")}, 1, 3, true, []string{"a", "b", "c"}},
		{[]engine.MirrorGroup{mirrored(4, "d")}, 1, 4, true, []string{"a", "b", "c", "d"}},
		{nil, 2, 4, true, []string{"b", "c", "d"}},
		{[]engine.MirrorGroup{mirrored(5, "e")}, 5, 5, true, []string{"e"}},
		{nil, 6, 5, true, nil},
	} {
		if whole, err := m.Append(m.Context(), 7, x.groups, x.first, x.last); whole != x.whole || err != nil {
			m.Errorf("from %d to %d it is whole: %v, %v", x.first, x.last, whole, err)
		}
		m.want(7, x.want...)
	}
}

// mirrorOld has 1 to 4, as an older copy of a mirror that had 3 to 6: groups before first do not stand for newer ones.
func mirrorOld(m *mirror) {
	m.add(7, 1, 4, mirrored(1, "a"), mirrored(2, "b"), mirrored(3, "c"), mirrored(4, "d"))
	for _, groups := range [][]engine.MirrorGroup{nil, {mirrored(7, "g")}} {
		last := 6 + uint64(len(groups))
		if whole, err := m.Append(m.Context(), 7, groups, 3, last); whole || err != nil {
			m.Errorf("from 3 to %d it is whole: %v, %v", last, whole, err)
		}
	}
	m.add(7, 3, 7, mirrored(3, "c"), mirrored(4, "d"), mirrored(5, "e"), mirrored(6, "f"), mirrored(7, "g"))
	m.want(7, "c", "d", "e", "f", "g")
}

func mirrorMany(m *mirror) {
	var all []string
	for n := range 70 {
		g := mirrored(uint64(n + 1))
		for i := range 30 {
			task := fmt.Sprintf("%d of %d %4000d", i, n, i)
			g.Tasks, all = append(g.Tasks, []byte(task)), append(all, task)
		}
		m.add(7, 1, g.N, g)
	}
	m.want(7, all...)
}

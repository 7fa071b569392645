package machine

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// The least limit of all groups that the process is in counts, on both versions
// of control groups.
func TestCgroupLimit(t *testing.T) {
	const none = math.MaxInt64
	for name, c := range map[string]struct {
		self  string
		files map[string]string
		want  int64
	}{
		"none":                                  {"", nil, none},
		"version 2":                             {"0::/a/b\n", map[string]string{"a/b/memory.max": "max\n", "a/memory.max": "1000\n"}, 1000},
		"version 2, root":                       {"0::/\n", map[string]string{"memory.max": "500\n"}, 500},
		"version 2, no max":                     {"0::/a\n", map[string]string{"a/memory.max": "max\n"}, none},
		"version 2, host's path in a container": {"0::/docker/1\n", map[string]string{"memory.max": "700\n"}, 700},
		"version 1": {
			"5:cpu,cpuacct:/x\n4:memory:/a/b\n0::/\n",
			map[string]string{
				"memory/a/b/memory.limit_in_bytes": "2000\n", "memory/a/memory.limit_in_bytes": "3000\n",
				"memory/memory.limit_in_bytes": "9223372036854771712\n",
			},
			2000,
		},
		"version 1, no limit": {"4:memory:/\n", map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n"}, none},
		"nonsense":            {"hello\n0::/a\n", map[string]string{"a/memory.max": "many\n"}, none},
	} {
		dir := t.TempDir()
		self := filepath.Join(dir, "self")
		if err := os.WriteFile(self, []byte(c.self), 0o600); err != nil {
			t.Fatal(err)
		}
		for f, text := range c.files {
			f = filepath.Join(dir, "tree", f)
			if err := os.MkdirAll(filepath.Dir(f), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := cgroupLimit(self, filepath.Join(dir, "tree")); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// What the stores and the heap may use together is within any limit.
func TestMemoryShares(t *testing.T) {
	for limit := int64(128 << 20); limit < 1<<36; limit *= 2 {
		if heap, stores := heapLimit(limit), int64(memTables*float64(MemTable(limit))); heap < limit/2 || heap+stores > limit*95/100 {
			t.Errorf("of %d bytes the heap has %d, the stores %d", limit, heap, stores)
		}
	}
}

// The ballast takes no memory, whenever one looks: it must not make what is alive
// less than nothing.
func TestAliveMemory(t *testing.T) {
	defer func() { ballast = nil }()
	before := aliveMemory()
	ballast = make([]byte, ballastBytes)
	for range 2 {
		if alive := aliveMemory(); alive > before+ballastBytes/2 {
			t.Errorf("%d MB are alive, before the ballast %d", alive>>20, before>>20)
		}
		runtime.GC()
	}
}

// Little may be alive, and yet the pages in use near the limit of a control group:
// that is full as well.
func TestPagesInUseAreCounted(t *testing.T) {
	used := residentMemory()
	if used < 1<<20 {
		t.Skipf("%d bytes are in use, says the kernel", used)
	}
	for _, c := range []struct {
		group int64
		more  int64
		full  bool
	}{{used / 2, 0, true}, {4 * used, 0, false}, {4 * used, 4 * used, true}, {math.MaxInt64, 4 * used, false}} {
		g := &memoryGuard{limit: math.MaxInt64, group: c.group}
		if got := g.IsFull(c.more); got != c.full {
			t.Errorf("%d bytes in use of %d, and %d more: full is %v", used, c.group, c.more, got)
		}
	}
}

package machine

import (
	"bytes"
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// gcPercent is how much garbage may gather, in percent of what is alive and the
// ballast, before it is collected. At 60,000 fires a second 60 MB of garbage a
// second are made: with little room the collector takes more, with much the memory
// that no cache holds does (without a ballast 15.9 µs of processor time a fire at
// 150 %, 17.8 at 400). At 60 %, with a ballast of 88 MB, 1,000,000 timers took 249 MB
// instead of 273, but a million that were due at one ms were handed over in 11.4 s instead
// of 7.2. Below minBallasted it is smallGCPercent, for less memory: in 512 MiB a fire costs
// the same at 60 and at 100 %.
const gcPercent, smallGCPercent = 100, 60

// ballast is alive for the collector's arithmetic alone. It is never touched, so it
// takes no memory; without it the room for garbage of a server with few timers is
// 20 MB, and with people at the console it collected 1.4 times a second. Each time
// stops the world, for as long as the machine keeps the core of one thread from us
// (1 to 5 ms in one of three, here), and then takes half of it for 15 ms: p99 of the
// calls meanwhile was 25 ms, and with the ballast, which makes the room 53 MB, 3.7.
var ballast []byte

// ballastBytes, where the memory limit is at least minBallasted.
const (
	ballastBytes = 40 << 20
	minBallasted = 2 << 30
)

// Pebble keeps, of the cold store, a cache of four memtables (which takes the memtables in),
// and of the journal three memtables of half the size; with compactions seven to eight
// memtables were seen. They are in the Go heap, and the room for garbage grows with them. In a
// build with cgo they are not, but malloc keeps what they leave. An eighth of a memory limit
// is theirs, and never more than 256 MB: with a quarter of 512 MiB a fire costs the same.
const (
	maxMemTable = 32 << 20
	minMemTable = 1 << 20
	memTables   = 8.0
)

// MemTable is the size of the cold store's memtables within a memory limit, in
// bytes.
func MemTable(limit int64) uint64 {
	return uint64(min(max(float64(limit)/8/memTables, minMemTable), maxMemTable))
}

// heapLimit is what of a memory limit the Go heap may use before the collector
// works harder, in bytes: 16 MB and 15 % are for what nobody counts, among it the
// pages of files that are not written yet.
func heapLimit(limit int64) int64 {
	rest := float64(limit) - memTables*float64(MemTable(limit))
	return max(int64(rest*0.85)-16<<20, limit/4)
}

// What the headers and bodies of calls may take: a quarter of the heap's limit.
const (
	maxBodies = 256 << 20
	minBodies = 8 << 20
)

// MaxWaiting is how many tasks may wait in memory for their call within the memory
// limit in force: a sixteenth of it, at some 1,100 bytes a one-shot: 480 of its
// definition, 240 of its timer, 350 of its task. As many again may be on their way out.
func MaxWaiting() int {
	limit := debug.SetMemoryLimit(-1) - int64(len(ballast))
	return int(min(max(limit/16/1100, 20_000), 1_000_000))
}

// BodyLimit is how many bytes of memory they may take within the memory limit in
// force.
func BodyLimit() int64 {
	return min(max((debug.SetMemoryLimit(-1)-int64(len(ballast)))/4, minBodies), maxBodies)
}

// TuneMemory is the one place where the garbage collector is set. GOGC and
// GOMEMLIMIT in the environment win.
func TuneMemory() {
	limit := MemoryLimit()
	own := os.Getenv("GOMEMLIMIT") == ""
	if os.Getenv("GOGC") == "" {
		percent := gcPercent
		switch {
		case limit < minBallasted:
			percent = smallGCPercent
		case own:
			ballast = make([]byte, ballastBytes)
		}
		debug.SetGCPercent(percent)
	}
	if own && limit < math.MaxInt64 {
		debug.SetMemoryLimit(heapLimit(limit) + int64(len(ballast)))
	}
}

// Where the kernel tells the control groups of a process, and what they allow.
const processGroups, groupTree = "/proc/self/cgroup", "/sys/fs/cgroup"

// MemoryLimit is what this process may use, by its control groups; math.MaxInt64: all.
func MemoryLimit() int64 { return cgroupLimit(processGroups, groupTree) }

// cgroupLimit is the least memory limit of the control groups that this process
// is in, in bytes; the largest int64 when there is none. Version 2 has one tree,
// version 1 a tree for memory. In a container the named path may be the host's:
// then the root of the tree that is mounted is the container's.
func cgroupLimit(self, tree string) int64 {
	least := int64(math.MaxInt64)
	b, _ := os.ReadFile(self)
	for line := range strings.Lines(string(b)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		root, name := tree, "memory.max"
		if slices.Contains(strings.Split(part[1], ","), "memory") {
			root, name = filepath.Join(tree, "memory"), "memory.limit_in_bytes"
		} else if part[1] != "" {
			continue
		}
		for dir := path.Clean("/" + part[2]); ; dir = path.Dir(dir) {
			b, err := os.ReadFile(filepath.Join(root, dir, name))
			if n, err2 := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64); err == nil && err2 == nil && n < noLimit {
				least = min(least, n)
			}
			if dir == "/" {
				break
			}
		}
	}
	return least
}

// noLimit: version 2 says "max"; version 1 the largest number of whole pages.
const noLimit = math.MaxInt64 / 2

// memoryShare is how much of the memory limit may be alive before nothing new is
// taken: what is left is for what was taken to be fired.
const memoryShare = 0.85

// residentShare is how much of a control group's limit the process may take, in
// pages that the kernel cannot take back, before nothing new is taken: a little more
// than heap and Pebble have by the shares above. What is alive says nothing of
// what malloc wastes, or of a collector that is behind: in 512 MiB the kernel ended
// a server at 2,357,000 timers, with 264 MB alive at most.
const residentShare = 0.9

// memoryGuard reports whether memory is nearly full. It looks at most every 100 ms.
type memoryGuard struct {
	limit  int64 // bytes, GOMEMLIMIT's
	group  int64 // bytes, the control groups'; the largest int64: none
	looked atomic.Int64
	left   atomic.Int64 // bytes, of what may be taken
}

// NewMemoryGuard goes by the limit in force; nil when there is none.
func NewMemoryGuard() *memoryGuard {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return nil
	}
	g := &memoryGuard{limit: limit - int64(len(ballast)), group: MemoryLimit()}
	g.left.Store(math.MaxInt64) // before the first look
	return g
}

// IsFull tells that there is no room for so many bytes more.
func (g *memoryGuard) IsFull(more int64) bool {
	if g == nil {
		return false
	}
	now, last := time.Now().UnixMilli(), g.looked.Load()
	if now-last >= 100 && g.looked.CompareAndSwap(last, now) {
		alive := int64(memoryShare*float64(g.limit)) - int64(aliveMemory())
		g.left.Store(min(alive, int64(residentShare*float64(g.group))-residentMemory()))
	}
	return more > g.left.Load()
}

// residentMemory is what the process has in memory except for pages of files, in bytes;
// 0 where the kernel does not tell.
func residentMemory() int64 {
	b, _ := os.ReadFile("/proc/self/statm")
	words := strings.Fields(string(b))
	if len(words) < 3 {
		return 0
	}
	resident, err := strconv.ParseInt(words[1], 10, 64)
	file, err2 := strconv.ParseInt(words[2], 10, 64)
	if err != nil || err2 != nil {
		return 0
	}
	return (resident - file) * int64(os.Getpagesize())
}

// aliveMemory is what would count against the limit right after a collection, in
// bytes: all that counts, except for garbage and free spans of the heap, and the ballast.
func aliveMemory() uint64 {
	s := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(s)
	of := func(i int) uint64 { return s[i].Value.Uint64() }
	live := min(of(5), of(4)) // of(5) is of the last collection: without the ballast before the first
	return of(0) - of(1) - of(2) - of(3) - of(4) + live - min(live, uint64(len(ballast)))
}

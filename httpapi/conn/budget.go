package conn

import (
	"runtime/debug"
	"sync"
)

// The bounds of a budget.
const leastBudget, mostBudget = 16 << 20, 256 << 20

// Budget counts the bytes of answers that are being written, or of bodies that are being
// read, by the app of the token: all together, and of one app half as much.
type Budget struct {
	total int64
	mu    sync.Mutex
	all   int64            // guarded by mu
	of    map[string]int64 // guarded by mu
}

// NewBudget is one of an eighth of the memory limit of the process.
func NewBudget() *Budget {
	return &Budget{
		total: max(leastBudget, min(debug.SetMemoryLimit(-1)/8, mostBudget)),
		of:    make(map[string]int64),
	}
}

// Hold counts n bytes, unless that is too much; what must be answered is counted always.
func (a *Budget) Hold(app string, n int64, must bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !must && (a.all+n > a.total || a.of[app]+n > a.total/2) {
		return false
	}
	a.all += n
	a.of[app] += n
	return true
}

// Held is how many bytes are counted.
func (a *Budget) Held() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.all
}

// Release counts n bytes no more.
func (a *Budget) Release(app string, n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all -= n
	if a.of[app] -= n; a.of[app] == 0 {
		delete(a.of, app)
	}
}

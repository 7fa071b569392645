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
	total   int64
	mu      sync.Mutex       // guards all below
	all     int64            // bytes that are held
	of      map[string]int64 // by app
	lasting map[string]int64 // of these, what HoldLasting holds
}

// NewBudget is one of an eighth of the memory limit of the process.
func NewBudget() *Budget {
	return &Budget{
		total: max(leastBudget, min(debug.SetMemoryLimit(-1)/8, mostBudget)),
		of:    make(map[string]int64), lasting: make(map[string]int64),
	}
}

// Hold counts n bytes, unless that is too much; what must be answered is counted always.
func (a *Budget) Hold(app string, n int64, must bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hold(app, n, must)
}

func (a *Budget) hold(app string, n int64, must bool) bool {
	if !must && (a.all+n > a.total || a.of[app]+n > a.total/2) {
		return false
	}
	a.all += n
	a.of[app] += n
	return true
}

// HoldLasting counts n bytes of an answer that may last for days, such as a stream of
// events. All such answers of an app have half of what the app has: the other half is
// for answers that end.
func (a *Budget) HoldLasting(app string, n int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lasting[app]+n > a.total/4 || !a.hold(app, n, false) {
		return false
	}
	a.lasting[app] += n
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
	a.release(app, n)
}

func (a *Budget) release(app string, n int64) {
	a.all -= n
	if a.of[app] -= n; a.of[app] == 0 {
		delete(a.of, app)
	}
}

// ReleaseLasting is Release of what HoldLasting has counted.
func (a *Budget) ReleaseLasting(app string, n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.release(app, n)
	if a.lasting[app] -= n; a.lasting[app] == 0 {
		delete(a.lasting, app)
	}
}

package scheduler

import "sync"

// background is what a request or a load leaves behind to be ended later: a commit
// in doubt, a bulk, timers whose change is under way. Run waits for it. What comes
// after that is not begun: it stays as it is, held or owed, for the next start.
type background struct {
	mu    sync.Mutex
	over  bool
	works sync.WaitGroup
}

// Go begins f, unless Run waits already.
func (b *background) Go(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.works.Go(f)
	}
}

// Wait lets nothing more begin, and waits for what has.
func (b *background) Wait() {
	b.mu.Lock()
	b.over = true
	b.mu.Unlock()
	b.works.Wait()
}

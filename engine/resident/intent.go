package resident

import (
	"slices"
	"sync"

	"xtimer/engine"
)

// Intents are attempts of at_most_once tasks that wait until the cold tier has a row that
// says that they have begun. They are of a node among several: whoever takes its shards over
// has no journal of the node, and ends the task of such a row as unknown instead of calling
// again. A process that is alone has none: its journal says what has begun.
//
//	Begin    the row, or none, does not say how the task stands      rowStale
//	a settle stores the row, of the shards that have intents only     rowCurrent
//	Intend   returns: from now on a byte may be sent
//
// Intents that come while a settle is under way share the next one. A nil Intents is that of a
// process that is alone.
type Intents struct {
	mu     sync.Mutex
	list   []*intent
	closed bool
	wake   chan struct{} // cap 1
}

type intent struct {
	*Attempt
	granted chan bool // cap 1
}

// Intend waits until the row of the attempt is stored. It reports whether the attempt may
// still be made: not if its task is another's by now, nor after Close.
func (a *Attempt) Intend() bool {
	x, c := a.memory.Intents, &intent{a, make(chan bool, 1)}
	x.mu.Lock()
	closed := x.closed
	if !closed {
		x.list = append(x.list, c)
	}
	x.mu.Unlock()
	if closed {
		a.withdraw()
		return false
	}
	select {
	case x.wake <- struct{}{}:
	default:
	}
	return <-c.granted
}

// Intend waits until the rows of all attempts are stored, and returns those that may still be
// made.
func Intend(all []*Attempt) []*Attempt {
	var wg sync.WaitGroup
	may := make([]bool, len(all))
	for i, a := range all {
		wg.Go(func() { may[i] = a.Intend() })
	}
	wg.Wait()
	i := -1
	return slices.DeleteFunc(all, func(*Attempt) bool { i++; return !may[i] })
}

// Wait is ready when there may be intents.
func (x *Intents) Wait() <-chan struct{} {
	if x == nil {
		return nil
	}
	return x.wake
}

// Shards are those that have intents.
func (x *Intents) Shards() (of engine.Set) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.list {
		of = of.Union(engine.SetOf(c.Key.Timer.Shard()))
	}
	return of
}

// Answer ends those intents that a settle has decided.
func (x *Intents) Answer() {
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.list = slices.DeleteFunc(x.list, func(c *intent) bool {
		stored, ok := c.isStored()
		if stored || !ok {
			c.granted <- ok
		}
		return stored || !ok
	})
}

// isStored reports whether the row of an attempt says that it has begun, and whether the
// attempt may still be made.
func (a *Attempt) isStored() (stored, ok bool) {
	sh := a.memory.shardOf(a.Key.Timer)
	sh.mu.Lock()
	again, ok := a.stands()
	stored = ok && a.task.row == rowCurrent
	sh.mu.Unlock()
	if again != nil {
		a.memory.Enqueue([]*Task{again})
	}
	return stored, ok
}

// Close refuses all intents: nothing settles any more.
func (x *Intents) Close() {
	if x == nil {
		return
	}
	x.mu.Lock()
	x.closed = true
	list := x.list
	x.list = nil
	x.mu.Unlock()
	for _, c := range list {
		c.withdraw()
		c.granted <- false
	}
}

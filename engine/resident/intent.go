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
//	Begin    the row, or none, does not say how the task stands           rowStale
//	Intend   the row is the intents' to write: no settle names the task,
//	         no watermark passes it, no change of its timer goes on       intends
//	Take     what waits is stored in one transaction
//	Stored   from now on a byte may be sent                               rowCurrent
//
// That transaction has none of the tasks of a settle, so it is stored beside one: a settle after
// a burst takes longer than a call may wait. Intents that come while one is stored share the
// next. One whose task the settle under way has named before waits for that settle. A
// nil Intents is that of a process that is alone.
type Intents struct {
	memory *Memory
	mu     sync.Mutex
	list   []*Intent
	closed bool
	wake   chan struct{} // cap 1
}

// Intent is one of them.
type Intent struct {
	*Attempt
	granted chan bool // cap 1
}

// Intend waits until the row of the attempt is stored. It reports whether the attempt may
// still be made: not if its task is another's by now, nor after Close.
func (a *Attempt) Intend() bool {
	c := a.intend()
	return c != nil && <-c.granted
}

// intend has the row of the attempt stored, and does not wait for that. It returns nil if the
// attempt may not be made.
func (a *Attempt) intend() *Intent {
	m := a.memory
	sh := m.lock(a.Key.Timer)
	again, ok := a.stands(a.memory.now())
	if ok {
		a.task.intends = true
	}
	sh.mu.Unlock()
	if !ok {
		if again != nil {
			m.Enqueue([]*Task{again})
		}
		return nil
	}
	c := &Intent{a, make(chan bool, 1)}
	m.Intents.add(c)
	m.Intents.poke()
	return c
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

// add has intents wait. After Close they are refused.
func (x *Intents) add(cs ...*Intent) {
	x.mu.Lock()
	closed := x.closed
	if !closed {
		x.list = append(x.list, cs...)
	}
	x.mu.Unlock()
	if closed {
		refuseAll(cs)
	}
}

// poke has Wait be ready.
func (x *Intents) poke() {
	if x == nil {
		return
	}
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// Wait is ready when there may be intents to store.
func (x *Intents) Wait() <-chan struct{} { return x.wake }

// Take adds the rows of those that wait to a settlement, and answers those that are decided
// already. Stored is told what became of the others.
func (x *Intents) Take(s *engine.Settlement) (taken []*Intent) {
	x.mu.Lock()
	list := x.list
	x.list = nil
	x.mu.Unlock()
	var later []*Intent
	for _, c := range list {
		m, t := x.memory, c.task
		sh := m.lock(t.Key.Timer)
		switch again, ok := c.stands(c.memory.now()); {
		case !ok:
			c.decide(again, false)
		case t.settle > m.settled.Load():
			later = append(later, c)
		case t.row == rowCurrent: // by a settle that named it between Begin and Intend
			c.decide(nil, true)
		default:
			m.write(s, t)
			taken = append(taken, c)
		}
		sh.mu.Unlock()
	}
	x.memory.Settled.Broadcast()
	x.add(later...) // EndSettle pokes
	return taken
}

// Stored tells what became of the rows that Take has added: not ok, they are to be stored again.
func (x *Intents) Stored(taken []*Intent, ok bool) {
	for _, c := range taken {
		m, t := x.memory, c.task
		sh := m.lock(t.Key.Timer)
		if !ok {
			t.touch()
		} else {
			if t.row == rowCurrent {
				t.journaled = 0
			}
			again, stands := c.stands(c.memory.now())
			c.decide(again, stands)
		}
		sh.mu.Unlock()
	}
	x.memory.Settled.Broadcast()
	if !ok {
		x.add(taken...)
		x.poke()
	}
}

// decide answers an intent. mu is held.
func (c *Intent) decide(again *Task, may bool) {
	if c.task.intends = false; again != nil {
		c.memory.Enqueue([]*Task{again})
	}
	c.granted <- may
}

// refuse ends an intent after Close.
func (c *Intent) refuse() {
	sh := c.memory.lock(c.Key.Timer)
	defer sh.mu.Unlock()
	c.retreat()
	c.decide(nil, false)
}

// Close refuses all intents: nothing stores them any more.
func (x *Intents) Close() {
	x.mu.Lock()
	x.closed = true
	list := x.list
	x.list = nil
	x.mu.Unlock()
	refuseAll(list)
}

func refuseAll(cs []*Intent) {
	for _, c := range cs {
		c.refuse()
	}
}

package allot

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/flow"
)

// Send sends a message to the node at an address, and returns its answer.
type Send func(ctx context.Context, address string, message []byte) ([]byte, error)

// Config of an Asker.
type Config[T any] struct {
	Queue *fair.Queue[T]
	Life  uint64
	Owns  func(shard int) (fence uint64, ok bool)
	Seen  func() *engine.Membership
	Alone bool // what is seen does not change
	// Store and Clock: see OwnerConfig.
	Store Store
	Clock func() (earliest, latest int64, ok bool)
	Log   *slog.Logger
}

// Asker asks the owners of flow keys for the calls that a queue would hand out, and is the
// owner of those that the node owns.
type Asker[T any] struct {
	cfg   Config[T]
	owner *Owner
	wake  chan struct{}
	send  atomic.Pointer[Send]

	mu     sync.Mutex // guards all below; the queue's is taken within
	seen   *engine.Membership
	number uint64
	lines  map[lineKey]*line
	asking sync.WaitGroup
}

// lineKey is who is asked. Calls of slow keys are asked for beside the others, for they are stored
// before the owner answers.
type lineKey struct {
	life uint64
	slow bool
}

// line is the asks of one owner, one after the other.
type line struct {
	lineKey
	address string
	wants   []want
	busy    bool
	told    uint64 // the number of moves that it was told, see ask
}

// want is a want, and the fence of its owner when it was asked.
type want struct {
	fair.Want
	fence uint64
}

const (
	// looks is how often the asker looks at what the life has seen.
	looks = 100 * time.Millisecond
	// mostKeys are in one ask.
	mostKeys = 1000
	// An ask of n keys is followed by a pause of pace and n times perKey: it gathers what is
	// wanted meanwhile, and bounds what asking costs.
	pace, perKey = 2 * time.Millisecond, 20 * time.Microsecond
	// answersIn is how long an owner has to answer, beside what it takes to store.
	answersIn = time.Second
	retry     = 100 * time.Millisecond
	// speaks is the first version of Node.Speaks that knows of owners.
	speaks = 3
)

var (
	errNoWay     = errors.New("this node cannot ask others yet")
	errStranger  = errors.New("the node does not know this one yet")
	errOtherKeys = errors.New("the answer of the node is about other keys")
)

// New makes an asker.
func New[T any](cfg Config[T]) *Asker[T] {
	return &Asker[T]{
		cfg: cfg, wake: make(chan struct{}, 1), lines: map[lineKey]*line{},
		owner: NewOwner(OwnerConfig{
			Life: cfg.Life, Owns: cfg.Owns, Seen: cfg.Seen, Rule: cfg.Queue.Rule, Now: cfg.Queue.Now,
			Store: cfg.Store, Clock: cfg.Clock, Log: cfg.Log,
		}),
	}
}

// SendBy has asks to other nodes sent.
func (a *Asker[T]) SendBy(send Send) { a.send.Store(&send) }

// Wake tells that the queue has wants. It does not block.
func (a *Asker[T]) Wake() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Answer answers the message of another node.
func (a *Asker[T]) Answer(message []byte) ([]byte, error) {
	q, err := read[ask](message)
	if err != nil {
		return nil, err
	}
	return encode(a.owner.answer(context.Background(), &q)), nil
}

// Run asks until ctx ends.
func (a *Asker[T]) Run(ctx context.Context) error {
	defer a.asking.Wait()
	for ctx.Err() == nil {
		a.owner.Look()
		a.look(ctx)
		list, next := a.cfg.Queue.Wants(mostKeys)
		a.put(ctx, list)
		if len(list) == mostKeys {
			continue
		}
		wait := max(next-a.cfg.Queue.Now(), time.Microsecond)
		if !a.cfg.Alone {
			wait = min(looks, wait)
		}
		select {
		case <-ctx.Done():
		case <-a.wake:
		case <-time.After(wait):
		}
	}
	return nil
}

// look sees which shards have moved.
func (a *Asker[T]) look(ctx context.Context) {
	seen := a.cfg.Seen()
	a.mu.Lock()
	defer a.mu.Unlock()
	if seen == nil || seen == a.seen || seen.Shards == nil {
		return
	}
	was := a.seen
	a.seen = seen
	a.cfg.Queue.SetAlone(slices.ContainsFunc(seen.Nodes, func(n engine.Node) bool { return n.Life != 0 && n.Speaks < speaks }))
	if was == nil || was.Moves != seen.Moves {
		a.cfg.Queue.Retell(func(n flow.Name) bool {
			s := Shard(n)
			return was == nil || was.Shards[s].Holder != seen.Shards[s].Holder || was.Shards[s].Fence != seen.Shards[s].Fence
		})
	}
	living := map[uint64]bool{}
	for i := range seen.Nodes {
		n := &seen.Nodes[i]
		if n.Life == 0 {
			continue
		}
		living[n.Life] = true
		for _, k := range []lineKey{{n.Life, false}, {n.Life, true}} {
			l := a.lines[k]
			if l == nil {
				l = &line{lineKey: k}
				a.lines[k] = l
			}
			l.address = n.Address
			a.start(ctx, l)
		}
	}
	for k, l := range a.lines {
		if !living[k.life] && !l.busy {
			delete(a.lines, k)
		}
	}
}

// put gives wants to the lines of their owners.
func (a *Asker[T]) put(ctx context.Context, list []fair.Want) {
	if len(list) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range list {
		h := a.holding(list[i].Name)
		l := a.lines[lineKey{h.Holder, list[i].Slow}]
		if l == nil {
			a.cfg.Queue.Grant(&list[i], nil, a.cfg.Queue.Now())
			continue
		}
		l.wants = append(l.wants, want{list[i], h.Fence})
		a.start(ctx, l)
	}
}

// holding is who owns a key, as far as this node knows. mu is held.
func (a *Asker[T]) holding(n flow.Name) engine.Holding {
	if a.seen == nil {
		return engine.Holding{}
	}
	return a.seen.Shards[Shard(n)]
}

// hasWork reports whether a line has something to say. mu is held.
func (a *Asker[T]) hasWork(l *line) bool { return len(l.wants) > 0 || !l.slow && l.told < a.seen.Moves }

// start has a line ask if it has something to say. mu is held.
func (a *Asker[T]) start(ctx context.Context, l *line) {
	if !l.busy && a.hasWork(l) {
		l.busy = true
		a.asking.Go(func() { a.work(ctx, l) })
	}
}

// work asks as long as the line has something to say.
func (a *Asker[T]) work(ctx context.Context, l *line) {
	for {
		wants, q, address, ok := a.next(ctx, l)
		if !ok {
			return
		}
		sent := a.cfg.Queue.Now()
		ans, err := a.exchange(ctx, l, address, q)
		a.apply(l, wants, q, ans, err, sent)
		rest := pace + time.Duration(len(wants))*perKey
		if err != nil {
			rest = retry
		}
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
	}
}

// next is what a line asks next; false: nothing.
func (a *Asker[T]) next(ctx context.Context, l *line) (wants []want, q *ask, address string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	lives := slices.ContainsFunc(a.seen.Nodes, func(n engine.Node) bool { return n.Life == l.life })
	if ctx.Err() != nil || !lives || !a.hasWork(l) {
		for i := range l.wants {
			a.cfg.Queue.Grant(&l.wants[i].Want, nil, a.cfg.Queue.Now())
		}
		l.wants, l.busy = nil, false
		return nil, nil, "", false
	}
	n := min(len(l.wants), mostKeys)
	wants, l.wants = l.wants[:n:n], l.wants[n:]
	a.number++
	q = &ask{Life: a.cfg.Life, Number: a.number, Told: l.told}
	if l.told < a.seen.Moves && a.cfg.Queue.HasTold(func(n flow.Name) bool { return a.holding(n).Holder == l.life }) {
		q.Told = a.seen.Moves
	}
	for i := range wants {
		w := &wants[i]
		q.Keys = append(q.Keys, keyAsk{
			Kind: w.Name.Kind, App: w.Name.App, Key: w.Name.Key,
			Calls: w.Calls, Kept: w.Kept, Holds: w.Holds, Unused: w.Unused, Closed: w.Closed,
		})
	}
	return wants, q, l.address, true
}

// exchange sends an ask and reads its answer.
func (a *Asker[T]) exchange(ctx context.Context, l *line, address string, q *ask) (ans answer, err error) {
	if l.life == a.cfg.Life {
		ans = a.owner.answer(ctx, q)
	} else if ans, err = a.remote(ctx, l, address, q); err != nil {
		return ans, err
	}
	switch {
	case ans.Stranger:
		return ans, errStranger
	case len(ans.Keys) != len(q.Keys):
		return ans, errOtherKeys
	}
	return ans, nil
}

// remote asks another node.
func (a *Asker[T]) remote(ctx context.Context, l *line, address string, q *ask) (ans answer, err error) {
	send := a.send.Load()
	if send == nil {
		return ans, errNoWay
	}
	wait := answersIn
	if l.slow {
		wait += slotWait + flow.StoredIn // what the owner grants is to find somebody who takes it
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	b, err := (*send)(ctx, address, encode(q))
	if err != nil {
		return ans, err
	}
	return read[answer](b)
}

// apply gives the queue what was granted. An answer of a node that has ceased to be the owner
// counts for nothing: the next one may have been told already what this node has. If it has become
// the owner again, it has forgotten what it was told.
func (a *Asker[T]) apply(l *line, wants []want, q *ask, ans answer, err error, sent time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		l.told = q.Told
	} else {
		a.cfg.Log.Debug("a node grants no calls of flow keys", "address", l.address, "error", err)
	}
	for i := range wants {
		var g *flow.Granted
		if h := a.holding(wants[i].Name); err == nil && h.Holder == l.life && h.Fence == wants[i].fence {
			g = ans.Keys[i].granted()
		}
		a.cfg.Queue.Grant(&wants[i].Want, g, sent+ans.Waited)
	}
}

package allot

import (
	"context"
	"log/slog"
	"time"

	"xtimer/engine/fair"
	"xtimer/engine/flow"
)

// KeeperConfig is what a Keeper works with.
type KeeperConfig[T any] struct {
	Queue *fair.Queue[T]
	// Load reads what is kept of a key; Save stores what is to be kept of keys, all or none.
	Load func(flow.Name) (flow.Kept, bool)
	Save func(context.Context, map[flow.Name]flow.Kept) error
	Wall func() int64 // Unix ms
	Log  *slog.Logger
}

// Keeper grants the calls of slow keys to the queue of a process that is alone: before a call
// is handed out it is stored that it counts, so that a start knows.
type Keeper[T any] struct {
	cfg     KeeperConfig[T]
	wake    chan struct{}
	books   map[flow.Name]*book
	prune   int // at so many books it is looked for those that know nothing
	number  uint64
	turn    uint64
	trouble bool // the last save failed
}

// NewKeeper makes a keeper.
func NewKeeper[T any](cfg KeeperConfig[T]) *Keeper[T] {
	return &Keeper[T]{cfg: cfg, wake: make(chan struct{}, 1), books: map[flow.Name]*book{}, prune: fewBooks}
}

// Wake tells that the queue has wants. It does not block.
func (k *Keeper[T]) Wake() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// saveWait is how long a save may take: what was granted lapses soon after.
const saveWait = 2 * time.Second

// Run grants until ctx ends.
func (k *Keeper[T]) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		list, next := k.cfg.Queue.Wants(mostKeys)
		if len(list) > 0 {
			k.grant(ctx, list)
		}
		if len(list) == mostKeys {
			continue
		}
		wait := time.Hour
		if next != flow.Never {
			wait = max(next-k.cfg.Queue.Now(), time.Microsecond)
		}
		select {
		case <-ctx.Done():
		case <-k.wake:
		case <-time.After(wait):
		}
	}
	return nil
}

// grant grants what the queue wants, once it is stored.
func (k *Keeper[T]) grant(ctx context.Context, list []fair.Want) {
	now := k.cfg.Queue.Now()
	k.forget(now)
	answers, kept := make([]*flow.Granted, len(list)), map[flow.Name]flow.Kept{}
	k.number++
	for i := range list {
		w := &list[i]
		b := k.book(w.Name, now)
		a := b.grant(1, &keyAsk{Calls: w.Calls, Kept: w.Kept, Holds: w.Holds, Unused: w.Unused, Closed: w.Closed}, k.number, true, now)
		if answers[i] = a.granted(); len(a.Runs) > 0 {
			kept[w.Name] = b.slots.Keep(now, k.cfg.Wall())
		}
	}
	if len(kept) > 0 {
		to, cancel := context.WithTimeout(ctx, saveWait)
		err := k.cfg.Save(to, kept)
		cancel()
		if err != nil && !k.trouble && ctx.Err() == nil {
			k.cfg.Log.Error("cannot store the calls of flow keys whose limit is for more than a minute; these calls wait until it can be stored", "error", err)
		}
		if k.trouble = err != nil; err != nil {
			for i := range list {
				if _, is := kept[list[i].Name]; is {
					answers[i] = nil
				}
			}
		}
	}
	for i := range list {
		k.cfg.Queue.Grant(&list[i], answers[i], now)
	}
}

// book is that of a key. A new one knows what is kept of the key.
func (k *Keeper[T]) book(n flow.Name, now time.Duration) *book {
	b := k.books[n]
	if b == nil {
		b = &book{turn: &k.turn, takers: map[uint64]*taker{}}
		k.books[n] = b
	}
	l := k.cfg.Queue.Limit(n)
	if !l.IsSlow() {
		l = &flow.Limit{} // it was changed, or removed, meanwhile
	}
	isNew := b.limit == flow.Limit{}
	b.set(l, -2*flow.LongestStart, now) // what a former process has made is known: there is no wait
	if kept, is := k.cfg.Load(n); is && isNew {
		b.slots.Restore(kept, now, k.cfg.Wall())
	}
	return b
}

// forget forgets the books that know nothing.
func (k *Keeper[T]) forget(now time.Duration) {
	if len(k.books) <= k.prune {
		return
	}
	for n, b := range k.books {
		if b.isIdle(now) {
			delete(k.books, n)
		}
	}
	k.prune = max(fewBooks, 2*len(k.books))
}

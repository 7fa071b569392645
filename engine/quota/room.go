package quota

import (
	"context"
	"sync/atomic"
	"time"

	"xtimer/engine"
)

// Changes are changes of timers that are on their way to the cold tier. They take room in the
// stock of their apps first:
//
//	Begin → Take, for each change → commit → End of its Room → End
//
// A change is counted as made until its Room ends.
//
// Without a Book there are none: nil, which takes no room.
type Changes struct {
	book  *Book
	epoch uint32
	ended bool
}

// Begin begins changes of timers of some apps. The stock of an app that is not counted yet is
// counted first.
func (b *Book) Begin(ctx context.Context, apps ...string) (*Changes, error) {
	if b == nil {
		return nil, nil
	}
	for {
		c := &Changes{book: b, epoch: b.underWay.begin()}
		a := b.uncounted(apps)
		if a == nil {
			return c, nil
		}
		c.End()
		if err := b.count(ctx, a); err != nil {
			return nil, err
		}
	}
}

// uncounted is the account of an app, of those given, whose stock has to be counted; nil: none.
func (b *Book) uncounted(apps []string) *account {
	for _, app := range apps {
		if a := b.all()[app]; a != nil && a.stock != nil && !a.stock.counted(b.cfg.Owned(), b.cfg.Now().UnixMilli()) {
			return a
		}
	}
	return nil
}

// End ends the changes.
func (c *Changes) End() {
	if c != nil && !c.ended {
		c.ended = true
		c.book.underWay.end(c.epoch)
	}
}

// Room is what one change has taken of the stock of an app.
type Room struct {
	stock    *stock // nil: the app has none
	was, now *engine.Timer
	taken    Size
}

// Take takes room for a change that makes now of was; nil: there is no timer. Take returns the
// error of a change that the quota of the app does not allow. One that changes nothing is
// allowed: isThere, if not nil, is asked whether the timer of a create is there already.
func (c *Changes) Take(was, now *engine.Timer, isThere func() bool) (Room, error) {
	if c == nil {
		return Room{}, nil
	}
	t := now
	if t == nil {
		t = was
	}
	a := c.book.all()[t.App]
	if a == nil || a.stock == nil {
		return Room{}, nil
	}
	r := Room{stock: a.stock, was: was, now: now}
	if no := r.take(t.App, &a.limits, c.book.cfg.Now().UnixMilli()); no != nil {
		if isThere != nil && isThere() {
			return Room{}, nil
		}
		return Room{}, c.book.refuse(a, no)
	}
	return r, nil
}

func (r *Room) take(app string, l *Limits, now int64) *refusal {
	s := r.stock
	s.mu.Lock()
	defer s.mu.Unlock()
	more, no := r.more(app, l, now)
	if no != nil {
		return no
	}
	r.taken = more
	s.sum = s.sum.plus(more)
	return nil
}

// more is what the change adds to the stock, or why the quota does not allow it. mu of the
// stock is held.
func (r *Room) more(app string, l *Limits, now int64) (Size, *refusal) {
	s := r.stock
	s.pass(now)
	more := s.size(r.was).growth(s.size(r.now))
	switch {
	case r.disables():
	case l.Timers > 0 && more.Timers > 0 && s.sum.Timers+more.Timers > int64(l.Timers):
		return Size{}, noRoom(app, "timers", int64(l.Timers), s.sum.Timers, more.Timers)
	case l.Bytes > 0 && more.Bytes > 0 && s.sum.Bytes+more.Bytes > int64(l.Bytes):
		return Size{}, noRoom(app, "bytes", int64(l.Bytes), s.sum.Bytes, more.Bytes)
	}
	return more, nil
}

// Allows returns the error that Take would return. It takes no room, which other changes
// would miss, and counts no refusal.
func (c *Changes) Allows(was, now *engine.Timer) error {
	if c == nil {
		return nil
	}
	a := c.book.all()[now.App]
	if a == nil || a.stock == nil {
		return nil
	}
	a.stock.mu.Lock()
	defer a.stock.mu.Unlock()
	r := Room{stock: a.stock, was: was, now: now}
	if _, no := r.more(now.App, &a.limits, c.book.cfg.Now().UnixMilli()); no != nil {
		return no.fault
	}
	return nil
}

// disables reports whether the change disables a timer, which may be one that has ended: it is
// always allowed.
func (r *Room) disables() bool {
	return r.was != nil && r.now != nil && r.now.Status == engine.Disabled && r.now.Payload() <= r.was.Payload()
}

// End ends the change, which was made or not.
func (r *Room) End(made bool) {
	s := r.stock
	if s == nil {
		return
	}
	r.stock = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum = s.sum.minus(r.taken)
	if made {
		s.remove(r.was)
		s.add(r.now)
	}
}

// count counts the stock of an app, when no change is under way that does not know of it.
func (b *Book) count(ctx context.Context, a *account) error {
	select {
	case b.counting <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-b.counting }()
	of, s := b.cfg.Owned(), a.stock
	if s.counted(of, b.cfg.Now().UnixMilli()) {
		return nil
	}
	s.recount()
	if err := b.underWay.await(ctx); err != nil {
		return err
	}
	s.empty(b.cfg.Now().UnixMilli())
	for after := ""; ; {
		ts, next, err := b.cfg.Timers(context.WithoutCancel(ctx), engine.TimerFilter{App: a.app}, after, countPage)
		if err != nil {
			return err
		}
		s.mu.Lock()
		for _, t := range ts {
			if of.Has(t.ID.Shard()) {
				s.add(t)
			}
		}
		if after = next; next == "" {
			s.is, s.of = true, of
		}
		s.mu.Unlock()
		if next == "" {
			return nil
		}
	}
}

// countPage is how many timers are read at a time.
const countPage = 256

// underWay counts changes by the epoch in which they began.
type underWay struct {
	epoch atomic.Uint32
	n     [2]atomic.Int64 // by epoch, modulo
}

func (u *underWay) begin() uint32 {
	for {
		epoch := u.epoch.Load()
		u.n[epoch%2].Add(1)
		if u.epoch.Load() == epoch {
			return epoch
		}
		u.end(epoch)
	}
}

func (u *underWay) end(epoch uint32) { u.n[epoch%2].Add(-1) }

// await returns when the changes have ended that began before. One call at a time.
func (u *underWay) await(ctx context.Context) error {
	if err := u.none(ctx, u.epoch.Load()+1); err != nil { // those of a former call that was given up
		return err
	}
	return u.none(ctx, u.epoch.Add(1)-1)
}

func (u *underWay) none(ctx context.Context, epoch uint32) error {
	for u.n[epoch%2].Load() != 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

package scheduler

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"xtimer/engine"
	"xtimer/engine/allot"
	"xtimer/engine/cluster"
	"xtimer/engine/process"
	"xtimer/engine/resident"
)

// A node gives shards to another that joins, or gives all when it leaves. What is due there
// meanwhile is called by the heir, some tenths of a second late and not marked as a repeat.
//
//	the life    marked    the shards are not its own any more
//	cede        gained    a gain of them that is under way has ended
//	            told      it is known whether what is owed may repeat calls of a life that was killed
//	            ceding    no attempt begins, no first byte is sent, no change is taken, no timer is made
//	            waited    the calls under way have callsGet to end
//	            closed    no change is under way, and the watermark may pass all that began: the shard's
//	                      results and what it owes are taken, and nothing more of it comes into memory
//	            settled   that is stored, with the watermark
//	            left      timers and tasks are out of memory
//	            forgotten the journal has no record of the shards
//	the life    given     the shards are free for their heir, and clean (Members.Give)
//
// Clean means: what is later than the watermark was not begun, and what is owed was begun
// only if its row says so. So the heir repeats nothing but the calls that still run when their
// shard is closed. Their rows say that they have begun, and are not to be tried before the
// timeout of the call and a second are over. What becomes of such a call is told to the
// owner of the shard (tellOwner, Learn), who goes on from there. The same is done for a call that ends
// after the last of lastSettles. If the result cannot be told, or the process ends before the call,
// the owner calls once more, marked as redelivered: this is the one repeat of a hand-over.
// An at_most_once task ends as unknown then, and is not called.
//
// The settle and the gift are two transactions. If the life ends between them the shards are
// still its own, and whoever takes them takes them for not clean.
//
// There is no way back: the life never owns a shard under this fence again. If it ends
// before the gift, its last settle is as that of any shard, and the next owner recovers.
// While a change is in doubt its shard waits, for its fate is this life's to find out.

const (
	// callsGet is how long calls under way may take when their shard is ceded.
	callsGet = 300 * time.Millisecond
	// passes is how long a shard waits until the watermark may pass all that began there:
	// for changes elsewhere that are in doubt, or for a clock that was set back. After that
	// it is given and is not clean: the heir calls again what the watermark has not passed.
	// Meanwhile the node reads from the cold tier, each asksEvery. Where a read fails, or takes
	// longer than asksEvery, the time begins anew: a change in doubt waits for the tier, too.
	passes    = 5 * time.Second
	asksEvery = time.Second
	// cedeAgain is how often it is looked at whether a shard can be closed.
	cedeAgain = 5 * time.Millisecond
	// tellsFor is for how long it is tried to tell the owner of a shard what became of a call, and
	// tellAgain the pause between two tries.
	tellsFor  = 5 * time.Second
	tellAgain = 50 * time.Millisecond
	// lastSettles is how often the calls are settled that ended during the settle before.
	lastSettles = 3
)

// cedes are the shards that have left memory, and were not gained since.
type cedes struct {
	mu            sync.Mutex // guards all below
	left, unclean engine.Set
	ever          engine.Set // … or were: other nodes have changed timers there
}

// noted are those of the shards that have left, and those that are not clean.
func (c *cedes) noted(of engine.Set) (left, unclean engine.Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.left.Both(of), c.unclean.Both(of)
}

func (c *cedes) note(left, unclean engine.Set) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.ever = c.left.Union(left), c.ever.Union(left)
	c.unclean = c.unclean.Without(left).Union(unclean)
}

// gained notes that shards are the life's again.
func (c *cedes) gained(list []cluster.Gained) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range list {
		c.left = c.left.Without(engine.SetOf(s.Shard))
	}
}

// wereElsewhere are the shards that this life has given away at some time.
func (c *cedes) wereElsewhere() engine.Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ever
}

// cede ends the work on shards, see cluster.Config.
func (e *Scheduler) cede(ctx context.Context, shards []int) (unclean engine.Set, err error) {
	of := engine.SetOf(shards...)
	left, _ := e.cedes.noted(of)
	if still := of.Without(left); still != (engine.Set{}) {
		if err := e.cedeStill(ctx, still); err != nil {
			return unclean, fmt.Errorf("cannot give shards away: %w", err)
		}
	}
	_, unclean = e.cedes.noted(of)
	return unclean, nil
}

// cedeStill cedes shards that are in memory.
func (e *Scheduler) cedeStill(ctx context.Context, of engine.Set) error {
	began := time.Now()
	for of.Without(e.memory.Held()) != (engine.Set{}) { // their gain is under way
		if process.Sleep(ctx, 2*cedeAgain); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	unclean, err := e.mayRepeat(ctx, of)
	if err != nil {
		return err
	}
	stopped := time.Now()
	e.memory.Cede(of)
	for e.memory.InCall(of) && time.Since(stopped) < callsGet && ctx.Err() == nil {
		process.Sleep(ctx, cedeAgain)
	}
	if err := e.closeShards(ctx, of, stopped); err != nil {
		return err
	}
	for i := 0; i < lastSettles && e.memory.HasEnded(of); i++ {
		if _, err := e.settler.settleLast(ctx, of, false); err != nil {
			return err
		}
	}
	notClean, ended := e.memory.Leave(of)
	unclean = unclean.Union(notClean)
	e.cedes.note(of, unclean)
	for _, ofShard := range ended {
		e.telling.begin(func() {
			for _, t := range ofShard {
				e.tellOwner(t)
			}
		})
	}
	e.log.Info("gave shards away", "shards", slices.Collect(of.All()), "took", time.Since(began).Round(time.Millisecond),
		"without_calls", time.Since(stopped).Round(time.Millisecond))
	return e.settler.forgetAll(ctx)
}

// closeShards closes shards, each as soon as it can be, and settles them.
func (e *Scheduler) closeShards(ctx context.Context, of engine.Set, stopped time.Time) error {
	for asked := stopped; ; {
		if began := time.Now(); began.Sub(asked) >= asksEvery {
			_, err := e.cfg.Cold.Shards(ctx)
			if asked = time.Now(); err != nil || asked.Sub(began) > asksEvery {
				stopped = asked
			}
		}
		closed, err := e.settler.settleLast(ctx, of, time.Since(stopped) > passes)
		if err != nil {
			return err
		}
		if of = of.Without(closed); of == (engine.Set{}) {
			return nil
		}
		if process.Sleep(ctx, cedeAgain); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// giveAll gives all shards away before the process ends, if another node serves. It goes on
// firing meanwhile. What nobody takes within the drain time is settled, and left; calls in
// flight have what is left of that time.
func (e *Scheduler) giveAll(until time.Time) {
	if e.life == nil || !e.life.HasOthers() {
		return
	}
	began := time.Now()
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	err := e.life.Drain(ctx)
	e.log.Info("gave all shards away", "took", time.Since(began).Round(time.Millisecond), "error", err)
}

// mayRepeat are those of the shards that are owed dues which a life may have begun that was
// killed: no row says which. It is looked for before the hand-over begins, for no such row
// is made later.
func (e *Scheduler) mayRepeat(ctx context.Context, of engine.Set) (unclean engine.Set, err error) {
	asked := engine.Set{}
	for i := range of.All() {
		if e.memory.MayRepeat(i) > 0 {
			asked = asked.Union(engine.SetOf(i))
		}
	}
	if asked == (engine.Set{}) {
		return unclean, nil
	}
	var upTo [engine.Shards]int64
	for i := range asked.All() {
		upTo[i] = e.memory.MayRepeat(i)
	}
	err = e.cfg.Cold.Owed(ctx, asked, -1, engine.MaxDue, func(os []engine.Owed) error {
		for i := range os {
			since := os[i].Key.Due
			if os[i].Task != nil {
				since = os[i].Task.Since
			}
			if shard := os[i].Key.Timer.Shard(); since <= upTo[shard] {
				unclean = unclean.Union(engine.SetOf(shard))
			}
		}
		return ctx.Err()
	})
	if err != nil {
		return unclean, fmt.Errorf("cannot see what is owed: %w", err)
	}
	for i := range asked.Without(unclean).All() {
		e.memory.RepeatsNone(i)
	}
	return unclean, nil
}

// settleLast closes those of the shards that can be closed, and settles them.
func (h *settler) settleLast(ctx context.Context, of engine.Set, force bool) (closed engine.Set, err error) {
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	e := h.e
	now, next := e.now(), e.journal.Next()
	cut := h.cut(max(now, e.memory.UpTo.Load())) // the clock may have been set back
	s := &engine.Settlement{Owner: e.cfg.Node}
	var caps []resident.Captured
	e.memory.BeginSettle()
	for i := range of.All() {
		if c, ok := e.memory.CaptureLast(i, cut, now, force, s); ok {
			closed, caps = closed.Union(engine.SetOf(i)), append(caps, c)
		}
	}
	if len(caps) == 0 {
		e.memory.EndSettle()
		return closed, nil
	}
	if err := h.store(ctx, s, caps, next); err != nil {
		return engine.Set{}, err
	}
	return closed, nil
}

// forgetAll has the journal forget all that it tells of other tasks than those in memory: it
// notes what it has of these once more, and forgets what is before. So no later life of the
// node takes for its own what it reads of a shard that another node has gone on with.
func (h *settler) forgetAll(ctx context.Context) error {
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	if h.e.former.Load() != nil {
		return nil // the first gain is to come
	}
	noted := h.noted
	needed, err := h.noteAgain(ctx, h.e.journal.Next(), -1)
	if h.noted = noted; err != nil {
		return err
	}
	if err := h.e.journal.Forget(needed, h.e.memory.AllWatermarks()); err != nil {
		return fmt.Errorf("cannot forget in the journal: %w", err)
	}
	return nil
}

// telling is what is told of calls that had ended when their shard left memory. The drain waits for that; of what ends
// later nothing is told.
type telling struct {
	mu    sync.Mutex // guards over: nothing begins once the drain waits
	over  bool
	under sync.WaitGroup
}

func (x *telling) begin(f func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.over {
		x.under.Go(f)
	}
}

func (x *telling) wait() {
	x.mu.Lock()
	x.over = true
	x.mu.Unlock()
	x.under.Wait()
}

// TellBy has what this node tells the owners of shards that it gave sent to them.
func (e *Scheduler) TellBy(send allot.Send) { e.tells.Store(&send) }

// What Learn answers.
const (
	answerLearned = "learned"
	answerLater   = "later" // the task is not there yet
	answerLate    = "late"  // the call was made again, or the task is over
)

// tellOwner tells the owner of a shard what became of a call that was under way when this node
// gave the shard. The worker that made the call waits for that, so a process that ends does, too.
// After a call of which that could not be told, others are not told either for as long as was
// tried: a batch is many.
func (e *Scheduler) tellOwner(t *engine.Task) {
	began := time.Now()
	if e.tells.Load() == nil || began.UnixNano() < e.untold.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), tellsFor)
	defer cancel()
	for message := engine.EncodeTask(t); ctx.Err() == nil; process.Sleep(ctx, tellAgain) {
		answer, err := e.tellOnce(ctx, t.Key.Timer.Shard(), message)
		if err == nil && string(answer) != answerLater {
			e.log.Debug("told the owner of a shard what became of a call", "task", t.Key, "answer", string(answer))
			return
		}
	}
	e.untold.Store(time.Now().Add(time.Since(began)).UnixNano())
	e.log.Warn("cannot tell the owner of a shard what became of a call; the call is made again", "task", t.Key)
}

// tellOnce tells whoever holds the shard by the last look.
func (e *Scheduler) tellOnce(ctx context.Context, shard int, message []byte) (answer []byte, err error) {
	switch n := e.holder(shard); {
	case n == nil:
		return []byte(answerLater), nil
	case n.Life == e.life.Node().Life:
		return e.Learn(ctx, message)
	default:
		return (*e.tells.Load())(ctx, n.Address, message)
	}
}

// holder is the node that holds a shard by the last look; nil: none, or the process is alone.
func (e *Scheduler) holder(shard int) *engine.Node {
	if e.life == nil {
		return nil
	}
	seen := e.life.Seen()
	if seen == nil || seen.Shards == nil || seen.Shards[shard].Holder == 0 {
		return nil
	}
	i := slices.IndexFunc(seen.Nodes, func(n engine.Node) bool { return n.Life == seen.Shards[shard].Holder })
	if i < 0 {
		return nil
	}
	return &seen.Nodes[i]
}

// ItemsBy has the items of bulk operations sent to the owners of their shards.
func (e *Scheduler) ItemsBy(send allot.Send) { e.items.Store(&send) }

// doElsewhere has the owner of a shard do an item of a bulk operation.
func (e *Scheduler) doElsewhere(ctx context.Context, shard int, message []byte) (answer []byte, err error) {
	n, send := e.holder(shard), e.items.Load()
	if n == nil || send == nil || n.Life == e.life.Node().Life {
		return []byte(engine.ErrElsewhere.Code), nil
	}
	return (*send)(ctx, n.Address, message)
}

// Learn takes what another node tells of a call that was under way when that node gave the
// shard.
func (e *Scheduler) Learn(ctx context.Context, message []byte) (answer []byte, err error) {
	t, err := engine.DecodeTask(bytes.Clone(message))
	if err != nil {
		return nil, fmt.Errorf("this is no task: %w", err)
	}
	learned := e.memory.Learn(t)
	if learned == resident.LearnedLater && !e.memory.Has(t.Key) && e.memory.Owned().Has(t.Key.Timer.Shard()) {
		read := e.memory.Reads.Begin()
		row, err := e.RowAt(ctx, t.Key)
		if err == nil && row != nil && row.Begun {
			err = e.resume(ctx, []engine.Owed{*row}, read, true)
		}
		read.End()
		switch {
		case err != nil:
			return nil, fmt.Errorf("cannot see what is owed: %w", err)
		case row == nil && !e.memory.Has(t.Key):
			return []byte(answerLate), nil
		}
		learned = e.memory.Learn(t)
	}
	return []byte(map[resident.Learned]string{resident.LearnedNow: answerLearned, resident.LearnedLater: answerLater, resident.LearnedLate: answerLate}[learned]), nil
}

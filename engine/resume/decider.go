package resume

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/inspect"
	"xtimer/engine/process"
	"xtimer/engine/resident"
)

// Config is what a Decider works with.
type Config struct {
	Cold   engine.Cold
	Memory *resident.Memory
	Reader *inspect.Reader
	Tally  *inspect.Tally
	Node   string // the owner's name in the cold tier
	Now    func() int64
	Log    *slog.Logger

	// Resume takes rows into memory that are stored.
	Resume func(ctx context.Context, rows []engine.Owed, read *resident.Read) error
	// LeaveOut tells of a timer that cannot be read; its rows stay.
	LeaveOut func(id engine.TimerID, err error)
}

// Decider decides about timers.
type Decider struct {
	cfg    Config
	memory *resident.Memory
}

// New makes one.
func New(cfg Config) *Decider { return &Decider{cfg: cfg, memory: cfg.Memory} }

const (
	// atOnce is how many timers are decided in one transaction.
	atOnce = 128
	// again is how long a timer waits that cannot be decided yet, or not as a whole: it is being
	// changed, or dues of it are still to come into memory, or before the watermark. Its tasks
	// try to begin meanwhile, and ask for a decision each time.
	again = 10 * time.Millisecond
)

// Run decides until ctx ends.
func (d *Decider) Run(ctx context.Context) error {
	in := &d.memory.Backlogs.Inbox
	for ctx.Err() == nil {
		ids := d.memory.Backlogs.Next()
		if len(ids) == 0 {
			select {
			case <-ctx.Done():
			case <-in.More:
			}
			continue
		}
		slices.Sort(ids)
		if ids = slices.Compact(ids); ids[0] == 0 {
			for shard := range engine.Shards {
				ids = append(ids, d.memory.Backlog(shard)...)
			}
			slices.Sort(ids)
			ids = slices.Compact(ids)[1:]
		}
		left := d.decideAll(ctx, ids)
		if len(left) > 0 {
			process.Sleep(ctx, again)
			in.Return(left)
		}
	}
	return nil
}

// decideAll decides about timers, and returns those that are to wait.
func (d *Decider) decideAll(ctx context.Context, ids []engine.TimerID) (left []engine.TimerID) {
	var more []engine.TimerID
	for _, id := range ids {
		if !d.memory.SkipShot(id) {
			more = append(more, id)
		}
	}
	for part := range slices.Chunk(more, atOnce) {
		wait, err := d.decide(ctx, part)
		left = append(left, wait...)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			d.cfg.Log.Error("cannot decide about what a pause held; trying again", "error", err)
			process.Sleep(ctx, time.Second)
			left = append(left, part...)
		}
	}
	return left
}

// decide decides about some timers in one transaction.
func (d *Decider) decide(ctx context.Context, ids []engine.TimerID) (wait []engine.TimerID, err error) {
	x := &decision{d: d, now: d.cfg.Now()}
	defer func() { x.end() }()
	for _, id := range ids {
		if d.memory.Owns(id) != nil {
			continue // another node decides
		}
		release, change := d.memory.TryClaim(id)
		if change != nil {
			wait = append(wait, id)
			continue
		}
		x.claim(id, release)
	}
	if err := x.freeze(ctx); err != nil {
		return wait, err
	}
	defs, err := d.cfg.Cold.Load(ctx, x.ids)
	if err != nil {
		return wait, err
	}
	for i, id := range x.ids {
		if len(x.pay)+len(x.t.Owe) > mostRows { // enough for one transaction
			wait = append(wait, x.ids[i:]...)
			break
		}
		if defs[i] == nil {
			continue
		}
		t, err := engine.DecodeTimer(defs[i])
		if err != nil {
			d.cfg.LeaveOut(id, err)
			continue
		}
		ready, err := x.add(ctx, t)
		if err != nil {
			return wait, err
		}
		if !ready {
			wait = append(wait, id)
		}
	}
	return wait, x.store(ctx)
}

// Package scheduler fires tasks on time, at least once: it wires the stages that package
// engine describes, one file a stage.
package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/engine/batch"
	"xtimer/engine/change"
	"xtimer/engine/cluster"
	"xtimer/engine/failpoint"
	"xtimer/engine/inspect"
	"xtimer/engine/limit"
	"xtimer/engine/object"
	"xtimer/engine/process"
	"xtimer/engine/quota"
	"xtimer/engine/resident"
	"xtimer/wheel"
)

// Config of an engine. Zero values mean the defaults stated.
type Config struct {
	Cold    engine.Cold
	Warm    engine.Warm
	Journal engine.Journal
	Caller  engine.Caller
	// Objects are what users configure beside timers; Open loads them from Cold. Default:
	// a set of its own.
	Objects *object.Set

	// Ended is told of each task that got its final status, and must not block; nil: nobody
	// is. It must not keep the task.
	Ended func(*engine.Task)

	// First is told the own lateness of each first attempt that is made, and of some that are
	// waited for, every few seconds. It must not block; nil: nobody is.
	First func(k engine.Key, app, name string, late time.Duration)

	// ColdName is what people call the cold tier; default "the cold tier".
	ColdName string
	Node     string // the owner's name in the cold tier; default "xtimer"
	// Now is the wall clock; default time.Now. For tests of clock steps.
	Now func() time.Time
	// AwaitClock returns when the wall clock can be relied on, or after a time that it
	// bounds itself; Open calls it when timers are enabled, before it decides anything,
	// with the last due that was finished. Default: it can be relied on.
	AwaitClock func(ctx context.Context, last time.Time)
	// Window is how far ahead the warm tier is filled; default 1 h.
	Window time.Duration
	// Cluster makes the process one of several nodes that share the cold tier, each with
	// some of the shards; nil: it is alone. Its callbacks are the engine's.
	Cluster *cluster.Config
	// MaxCalls bounds the calls in flight; default 8192.
	MaxCalls int
	// MaxCallsPerApp and MaxCallsPerTarget bound those of one app and to one
	// scheme://host:port; default MaxCalls and half of it.
	MaxCallsPerApp, MaxCallsPerTarget int
	// MaxWaiting is how many tasks that are due may wait in memory (about 700 bytes
	// each) before those of crowded lanes wait in the cold tier; default 1,000,000.
	MaxWaiting int
	// OperationsDir is where bulk operations are kept that go on after a restart; "": they
	// end with the process.
	OperationsDir string
	// Drain is how long calls in flight may take after Run's context ended;
	// default 30 s.
	Drain time.Duration
	// HistoryRetention and FinishedRetention; default 7 days each.
	HistoryRetention, FinishedRetention time.Duration
	// HistorySampled: the cold tier does not keep every success.
	HistorySampled bool
	// DiskFull tells that nothing new may be taken; default: never.
	DiskFull func() bool
	// DiskCritical tells that history of successes may not be written either,
	// so that firing can go on; default: never.
	DiskCritical func() bool
	// MemoryFull tells that nothing new may be taken, as what was taken needs the
	// memory that is left, so many bytes of it more than now; default: never.
	MemoryFull func(more int64) bool
	// Bodies is how many bytes of memory the headers and bodies of calls take at
	// most; default 256 MiB.
	Bodies  int64
	Log     *slog.Logger // default slog.Default()
	Metrics *metrics.Set // where the engine counts; default a set of its own
}

func (c *Config) fill() {
	c.ColdName = orDefault(c.ColdName, "the cold tier")
	c.Node = orDefault(c.Node, "xtimer")
	c.Window = orDefault(c.Window, time.Hour)
	c.MaxCalls = orDefault(c.MaxCalls, 8192)
	c.MaxCallsPerApp = orDefault(c.MaxCallsPerApp, c.MaxCalls)
	c.MaxCallsPerTarget = orDefault(c.MaxCallsPerTarget, max(c.MaxCalls/2, 1))
	c.MaxWaiting = orDefault(c.MaxWaiting, 1_000_000)
	c.Bodies = orDefault(c.Bodies, 256<<20)
	c.Drain = orDefault(c.Drain, 30*time.Second)
	c.HistoryRetention = orDefault(c.HistoryRetention, 7*24*time.Hour)
	c.FinishedRetention = orDefault(c.FinishedRetention, 7*24*time.Hour)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.DiskFull == nil {
		c.DiskFull = func() bool { return false }
	}
	if c.DiskCritical == nil {
		c.DiskCritical = func() bool { return false }
	}
	if c.MemoryFull == nil {
		c.MemoryFull = func(int64) bool { return false }
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Metrics == nil {
		c.Metrics = metrics.NewSet()
	}
	if c.Objects == nil {
		c.Objects = object.New(c.Cold, c.Now, c.Log)
	}
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Scheduler fires tasks on time, at least once. See package engine for the way of a task.
type Scheduler struct {
	*inspect.Reader // what readers ask
	*change.Maker   // what callers change

	cfg     Config
	log     *slog.Logger
	process *process.State
	journal engine.Journal
	memory  *resident.Memory
	metrics *counters

	tally *inspect.Tally
	tiers *inspect.Tiers

	migrator  migrator
	ownership *process.Ownership // nil: nobody else can open the cold tier
	nodeParts
	settler      settler
	backlog      backlog
	backpressure backpressure
	pieces       pieces
	batches      batch.Runner
	bodyTrouble  trouble       // with reading timers that are to be called
	early        []engine.Owed // what is to be in memory before the first fire; see recovery.early
}

// New builds an engine; nothing runs before Run.
func New(cfg Config) *Scheduler {
	cfg.fill()
	if cfg.Cluster != nil && cfg.Cluster.Mirror != nil {
		j := cluster.NewMirrored(cfg.Journal, cfg.Cluster.Mirror, cfg.Cluster.Node.Life, cfg.Log)
		cfg.Metrics.NewGauge("xtimer_mirror_lag_seconds", func() float64 { return j.Lag().Seconds() })
		cfg.Journal = j
	}
	e := &Scheduler{cfg: cfg, log: cfg.Log, process: process.NewState(), journal: cfg.Journal, tiers: &inspect.Tiers{}, metrics: newCounters(cfg.Metrics)}
	e.backpressure.outcomes, e.backpressure.crowd, e.backpressure.bytes, e.backpressure.age = maxUnsettled, maxCrowd, maxUnsettledBytes, cfg.Window
	e.settler.e, e.settler.turn, e.migrator.e, e.migrator.more, e.migrator.gaps.lost = e, make(chan struct{}, 1), e, make(chan struct{}, 1), map[int64]engine.Set{}
	e.backlog.later = map[<-chan struct{}]laterRows{}
	e.pieces.rows = mostRows
	owned := engine.AllShards
	if cfg.Cluster != nil {
		owned = engine.Set{}
		e.join(*cfg.Cluster)
		cfg.Now = e.cfg.Now
	} else if c, ok := cfg.Cold.(engine.Shared); ok {
		e.ownership = process.NewOwnership(c.Owns, cfg.Now)
		cfg.Metrics.NewGauge("xtimer_ownership_age_seconds", e.ownership.Age)
	}
	queue := e.newQueue()
	e.memory = resident.New(resident.Config{
		Journal: cfg.Journal, Now: cfg.Now, Owned: owned, IsNode: e.life != nil, Ownership: e.ownership, Queue: queue, Wheel: wheel.New(wheel.Config{Now: cfg.Now, OnStep: e.onStep, OnLate: queue.Yield}, func(due int64, batch []resident.Item) { e.memory.Fire(due, batch) }),
		MaxWaiting: cfg.MaxWaiting, Bodies: cfg.Bodies, MemoryFull: cfg.MemoryFull, DiskCritical: cfg.DiskCritical, Ended: func(t *engine.Task) { e.tally.Ended(t) },
	})
	e.batches.Config = batch.Config{Memory: e.memory, Now: cfg.Now, Ready: e.ready, ReadyToo: e.readyToo, Note: e.note, Call: e.call, End: e.end}
	limit.New(cfg.Objects, e.memory, e.now, cfg.Log)
	quotas := quota.New(quota.Config{Set: cfg.Objects, Queue: queue, Metrics: cfg.Metrics, Log: cfg.Log, Now: cfg.Now, Owned: e.memory.OwnedNow, Timers: cfg.Cold.Timers})
	gaugeHolds(cfg.Metrics, queue)
	read := inspect.Config{
		Cold: cfg.Cold, Warm: cfg.Warm, Journal: cfg.Journal, Memory: e.memory, Process: e.process, Minutes: &e.migrator.minutes, Tiers: e.tiers,
		Node: cfg.Node, Now: cfg.Now, Window: cfg.Window, HistoryRetention: cfg.HistoryRetention, HistorySampled: cfg.HistorySampled, Metrics: cfg.Metrics, Ended: cfg.Ended, First: cfg.First,
	}
	e.Reader, e.tally = inspect.New(read)
	e.Maker = change.New(change.Config{
		Config: read, Reader: e.Reader, Tally: e.tally, Quotas: quotas, Log: cfg.Log, OperationsDir: cfg.OperationsDir, Rows: min(endedRows, fewestRows),
		Elsewhere: e.doElsewhere, Open: e.open, Entries: e.migrator.entriesOf, AddWarm: func(ctx context.Context, es []engine.Entry) { e.addWarm(ctx, es, true) },
	})
	return e
}

// followObjects has the objects read again when others may have written them.
func (e *Scheduler) followObjects(ctx context.Context) error {
	if e.life != nil {
		return e.cfg.Objects.FollowOthers(ctx)
	}
	return e.cfg.Objects.Follow(ctx)
}

// Objects are what users configure beside timers.
func (e *Scheduler) Objects() *object.Set { return e.cfg.Objects }

func (e *Scheduler) now() int64 { return e.cfg.Now().UnixMilli() }

// Open opens the cold tier and the journal and recovers what the former process
// left; the warm tier is opened by the migrator, for its loss costs speed only.
// On an error everything is closed again.
func (e *Scheduler) Open(ctx context.Context) (err error) {
	for _, part := range []struct {
		name  string
		open  func(context.Context) error
		close func() error
	}{
		{e.cfg.ColdName, e.cfg.Cold.Open, e.cfg.Cold.Close},
		{"the journal", e.journal.Open, e.journal.Close},
	} {
		e.process.StartsWith("it waits for " + part.name)
		if err := part.open(ctx); err != nil {
			return fmt.Errorf("cannot open %s: %w", part.name, err)
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, part.close())
			}
		}()
	}
	e.tiers.Read(nil)
	e.ReadReset()
	if err = e.awaitClock(ctx); err != nil {
		return err
	}
	if err = e.cfg.Objects.Load(ctx); err != nil { // a start has to know which places are kept
		return err
	}
	e.process.StartsWith("it takes the timers over")
	if e.life != nil {
		err = e.openAmong()
	} else {
		err = e.recover(ctx)
	}
	if err == nil {
		err = e.cfg.Objects.Load(ctx)
	}
	if err != nil {
		e.tiers.Read(engine.ErrUnavailable)
	}
	return err
}

// awaitClock has Config.AwaitClock wait, if a wrong clock can do harm.
func (e *Scheduler) awaitClock(ctx context.Context) error {
	if e.cfg.AwaitClock == nil {
		return nil
	}
	e.process.StartsWith("it waits for the clock to be synchronised")
	c, err := e.cfg.Cold.Counts(ctx)
	if err != nil {
		return fmt.Errorf("cannot see whether there are timers: %w", err)
	}
	shards, err := e.cfg.Cold.Shards(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the watermarks: %w", err)
	}
	last := int64(0)
	for i := range shards {
		last = max(last, shards[i].Watermark)
	}
	if c.Enabled > 0 && last > 0 {
		e.cfg.AwaitClock(ctx, time.UnixMilli(last))
	}
	return ctx.Err()
}

// Run fires until ctx ends, then drains: no new task is taken, calls in flight
// may end within Config.Drain, all else stays due. It returns when everything
// that it started has ended and what is durable is closed.
//
// The last stage starts first and stops last:
//
//	journal ◄ ownership ◄ history ◄ intents ◄ workers ◄ wheel ◄ backlog, misfires ◄ migrator, auditor, janitor
func (e *Scheduler) Run(ctx context.Context) error {
	journal := e.process.Stage("journal", e.journal.Run)
	ownership := e.process.Stage("ownership", e.own)
	allots := e.process.Stage("flow keys", e.allotCalls)
	history := e.process.Stage("history", e.settler.run)
	intents := e.process.Stage("intents", e.storeIntents)
	read := e.memory.Reads.Begin()
	_ = e.resumeBusy(ctx, e.early, read) // nothing fires before; it fails only when ctx ends
	e.early = nil
	read.End()
	turning := e.process.Stage("wheel", e.memory.Wheel.Run)
	loading := []*process.Stage{
		e.process.Stage("refill", e.refill),
		e.process.Stage("ended", e.cancelFormer),
		e.process.Stage("moves", e.moveRows),
		e.process.Stage("misfires", e.decideLate),
		e.process.Stage("backlogs", e.decider().Run),
		e.process.Stage("deferred", e.admitDeferred),
		e.process.Stage("migrator", e.migrator.run),
		e.process.Stage("auditor", e.audit),
		e.process.Stage("janitor", e.janitor),
		e.process.Stage("places", e.followMemory),
		e.process.Stage("overdue", e.watchOverdue),
		e.process.Stage("journal's watch", e.watchJournal),
		e.process.Stage("objects", e.followObjects),
	}
	e.process.Serve()
	e.log.Info("firing")
	e.ResumeBulk()

	var until time.Time
	select {
	case <-ctx.Done():
		e.log.Info("draining", "at_most", e.cfg.Drain)
		until = time.Now().Add(e.cfg.Drain)
		e.giveAll(until)
	case name := <-e.process.Failed():
		e.log.Error("a stage has failed; ending", "stage", name)
		until = time.Now().Add(e.cfg.Drain)
	}
	e.process.End()
	e.process.Wait()
	var errs []error
	for _, s := range loading {
		errs = append(errs, s.Stop())
	}
	errs = append(errs, turning.Stop())
	e.memory.Queue.Close()
	e.memory.Bodies.Close()
	failpoint.Hit("drain")
	e.drain(until)
	errs = append(errs, intents.Stop(), history.Stop())
	last, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	errs = append(errs, e.settler.settle(last, true), allots.Stop(), ownership.Stop(), journal.Stop())
	errs = append(errs, e.cfg.Warm.Close(), e.journal.Close(), e.cfg.Cold.Close())
	e.log.Info("ended")
	return errors.Join(errs...)
}

// handOver is the drain time of a process that is taken over: the other waits for its
// last settle, and not for long.
const handOver = 500 * time.Millisecond

// drain waits for the calls in flight, until the drain time is over. What is cut off
// then is no failed attempt: it stays begun, and is sent again at the next start.
func (e *Scheduler) drain(until time.Time) {
	most := time.Until(until)
	if e.ownership.IsOver() {
		most = min(most, handOver)
	}
	ended := make(chan struct{})
	go func() {
		e.memory.Queue.Wait()
		e.telling.wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(most):
		_, flying := e.memory.Queue.Load()
		e.log.Warn("drain time is over; calls in flight are cut off and repeated at the next start", "calls", flying)
	}
}

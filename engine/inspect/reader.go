// Package inspect answers what readers ask: of the timers and tasks as they stand, of those
// that have ended, and of how the service does.
package inspect

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/process"
	"xtimer/engine/resident"
	"xtimer/engine/verify"
)

// Config is what a Reader reads.
type Config struct {
	Cold    engine.Cold
	Warm    engine.Warm
	Journal engine.Journal
	Memory  *resident.Memory
	Process *process.State
	Minutes *Minutes
	Tiers   *Tiers

	Node             string           // the owner's name in the cold tier
	Now              func() time.Time // the wall clock
	Window           time.Duration    // how far ahead the warm tier is filled
	HistoryRetention time.Duration
	HistorySampled   bool
	Ended            func(*engine.Task)                                       // is told of each task that ended; nil: nobody is
	First            func(k engine.Key, app, name string, late time.Duration) // is told of tasks that wait for their first attempt; nil: nobody is
	Metrics          *metrics.Set                                             // gets what is read of the service
}

// Reader answers what readers ask. It changes neither memory nor the tiers.
type Reader struct {
	cfg         Config
	memory      *resident.Memory
	tally       *Tally
	apps        Apps
	subscribers *Subscribers
	overdue     overdue
	findings    *metrics.Counter // of verifications
}

// New makes a reader, and the tally of what it reads.
func New(cfg Config) (*Reader, *Tally) {
	r := &Reader{cfg: cfg, memory: cfg.Memory}
	r.subscribers = NewSubscribers(history{r})
	r.apps = Apps{
		Figures: NewFigures(), Census: NewCensus(cfg.Cold.Timers, r.now, cfg.Process.Go),
		Lanes: r.memory.Queue.Lanes, Stored: r.overdue.storedIn, Now: r.now,
	}
	cfg.Tiers.Counts.CompareAndSwap(nil, &engine.Counts{})
	r.tally = newTally(r.apps.Figures, r.subscribers, cfg.Ended, cfg.Metrics)
	r.findings = cfg.Metrics.NewCounter("xtimer_verify_findings_total")
	r.register(cfg.Metrics)
	return r, r.tally
}

func (r *Reader) now() int64 { return r.cfg.Now().UnixMilli() }

// Now is what the clock shows, in Unix ms, and how often it was seen to step since the
// start.
func (r *Reader) Now() (now int64, steps uint64) { return r.now(), uint64(r.memory.Steps.Load()) }

// Started is when the service began, in Unix ms.
func (r *Reader) Started() int64 { return r.memory.StartedAt }

// Node is this node's name.
func (r *Reader) Node() string { return r.cfg.Node }

// Apps are the apps as readers see them.
func (r *Reader) Apps() *Apps { return &r.apps }

// Subscribers are those who watch tasks end.
func (r *Reader) Subscribers() *Subscribers { return r.subscribers }

// Calls describes the calls in flight, and at most n of the targets whose limit makes
// tasks wait.
func (r *Reader) Calls(n int) fair.Stats { return r.memory.Queue.Stats(n) }

// Verify compares history with the plan while the service runs, paced so that firing does
// not suffer. It calls tell with each finding.
func (r *Reader) Verify(ctx context.Context, v verify.Request, tell func(*verify.Finding) error) (verify.Verdict, error) {
	if err := r.cfg.Process.Refusal(); err != nil {
		return verify.Verdict{}, err
	}
	v.Sampled = v.Sampled || r.cfg.HistorySampled
	pace := func(worked time.Duration) {
		if waiting, _ := r.memory.Queue.Load(); waiting > 0 {
			worked *= 4 // calls are late already
		}
		process.Sleep(ctx, worked)
	}
	count := func(f *verify.Finding) error {
		if f.Kind != verify.Unproven && f.Kind != verify.FoundLate { // how late is late is the caller's to say
			r.findings.AddInt64(f.Count)
		}
		return tell(f)
	}
	return verify.Online(ctx, r.cfg.Cold, v, r.now(), r.cfg.HistoryRetention, pace, count)
}

// CheckVerification finds what is wrong with a request.
func (r *Reader) CheckVerification(v verify.Request) error {
	return v.Check(r.now(), r.cfg.HistoryRetention)
}

// history is what subscribers read again.
type history struct{ *Reader }

func (h history) EndedInMemory(give func(*engine.Task)) {
	h.memory.EachTask(func(t *resident.Task) {
		if t.IsOver() {
			give(&t.Task)
		}
	})
}

// Task finds a task that has ended, also one whose shard another node has by now.
func (h history) Task(ctx context.Context, k engine.Key) (*engine.Task, error) {
	t, err := h.Reader.Task(ctx, k)
	if errors.Is(err, engine.ErrElsewhere) {
		return h.cfg.Cold.Task(ctx, k)
	}
	return t, err
}

// Stored leaves the records of other nodes to them: each tells its own.
func (h history) Stored(ctx context.Context, f engine.TaskFilter, before engine.Key, limit int) ([]*engine.Task, engine.Key, error) {
	ts, next, err := h.cfg.Cold.Tasks(ctx, f, before, limit)
	if own := h.memory.Owned(); own != engine.AllShards {
		ts = slices.DeleteFunc(ts, func(t *engine.Task) bool { return !own.Has(t.Key.Timer.Shard()) })
	}
	return ts, next, err
}

func (h history) LeftOut(ctx context.Context, from, to int64) ([]int64, error) {
	return h.cfg.Cold.LeftOut(ctx, from, to)
}

func (h history) Now() int64       { return h.now() }
func (h history) KeptSince() int64 { return h.now() - h.cfg.HistoryRetention.Milliseconds() }

// Package change makes the changes that callers ask for: it commits each in the cold tier,
// and puts it into force in memory.
package change

import (
	"context"
	"log/slog"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/engine/inspect"
	"xtimer/engine/plan"
	"xtimer/engine/process"
	"xtimer/engine/quota"
	"xtimer/engine/resident"
)

// Config is what a Maker works with.
type Config struct {
	inspect.Config
	Reader *inspect.Reader
	Tally  *inspect.Tally
	Quotas *quota.Book // nil: no app has one
	// OperationsDir is where bulk operations are kept that go on after a restart; "": they
	// end with the process.
	OperationsDir string
	// Rows is how many rows a change takes along; the others are left to Memory.Former.
	Rows int
	Log  *slog.Logger

	// Open is nil when something new may be taken.
	Open func() error
	// Entries are what the warm tier is to have of a timer, from an instant on; next is
	// its next due.
	Entries func(t *engine.Timer, p *plan.Plan, next, from int64) []engine.Entry
	// Elsewhere has the node that owns a shard do an item of a bulk operation, see DoItem. The answer is the code of
	// ErrElsewhere while no other node does.
	Elsewhere func(ctx context.Context, shard int, message []byte) (answer []byte, err error)
	// AddWarm puts them there, or into memory where the warm tier was read already.
	AddWarm func(ctx context.Context, es []engine.Entry)
}

// Maker makes changes, of one timer at a time.
type Maker struct {
	*inspect.Reader
	IDs engine.IDs // of new timers and operations

	cfg        Config
	memory     *resident.Memory
	process    *process.State
	journal    engine.Journal
	tally      *inspect.Tally
	log        *slog.Logger
	operations *operations
	made       *metrics.Counter // timers
}

// New makes a maker of changes.
func New(cfg Config) *Maker {
	return &Maker{
		Reader: cfg.Reader, cfg: cfg, memory: cfg.Memory, process: cfg.Process, journal: cfg.Journal, tally: cfg.Tally, log: cfg.Log,
		operations: newOperations(), made: cfg.Metrics.NewCounter("xtimer_timers_created_total"),
	}
}

// QuotaUse is what an app uses of its quota.
func (e *Maker) QuotaUse(ctx context.Context, app string) quota.Use {
	return e.cfg.Quotas.Use(ctx, app)
}

// RefusingQuotas are the apps whose quota has refused a change within the last minute.
func (e *Maker) RefusingQuotas() []string { return e.cfg.Quotas.Refusing() }

func (e *Maker) now() int64 { return e.cfg.Now().UnixMilli() }

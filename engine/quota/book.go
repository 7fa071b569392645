package quota

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/flow"
	"xtimer/engine/object"
	"xtimer/engine/resident"
)

// Book keeps the quotas in force as the objects say. A quota is in force when the write of
// its object returns.
type Book struct {
	cfg      Config
	refusals map[string]*metrics.Counter // by what a change was refused for

	// accounts are those of the apps that have a quota; nil: there are none. The map is not
	// changed once it is shared.
	accounts atomic.Pointer[map[string]*account]

	underWay underWay
	counting chan struct{} // full while a stock is counted: one at a time
}

// Config is what a Book works with.
type Config struct {
	Set     *object.Set // not loaded yet
	Queue   *fair.Queue[*resident.Task]
	Metrics *metrics.Set
	Log     *slog.Logger

	Now func() time.Time
	// Owned are the shards of this node. The pointer changes whenever shards go or come.
	Owned func() *engine.Set
	// Timers lists timers as engine.Cold does.
	Timers func(ctx context.Context, f engine.TimerFilter, after string, limit int) (ts []*engine.Timer, next string, err error)
}

// account is a quota, and what the app has used of it.
type account struct {
	app    string
	limits Limits
	stock  *stock // nil: the quota does not limit it

	mu      sync.Mutex
	creates flow.Gate
	refused time.Duration // when a change was last refused, on the clock of the queue; 0: never
}

// New registers the kind of the objects.
func New(cfg Config) *Book {
	b, set := &Book{cfg: cfg, refusals: map[string]*metrics.Counter{}, counting: make(chan struct{}, 1)}, cfg.Set
	for _, what := range []string{"creates", "timers", "bytes"} {
		b.refusals[what] = cfg.Metrics.NewCounter(fmt.Sprintf("xtimer_quota_refusals_total{what=%q}", what))
	}
	set.Register(object.Kind{Name: Kind, Changed: func(k engine.ObjectKey) {
		if k == (engine.ObjectKey{}) {
			b.load()
		} else {
			b.put(k.App, set.Get(k), false)
		}
	}})
	return b
}

// load puts all quotas into force, after they were read from the store.
func (b *Book) load() {
	for _, app := range b.cfg.Set.Apps(Kind) {
		b.put(app, b.cfg.Set.Get(Key(app)), true)
	}
	for app := range b.all() {
		if b.cfg.Set.Get(Key(app)) == nil {
			b.put(app, nil, true)
		}
	}
}

func (b *Book) all() map[string]*account {
	if m := b.accounts.Load(); m != nil {
		return *m
	}
	return nil
}

// put puts the quota of an app into force; nil: it has none. started: it was there before the
// process. The set makes no write meanwhile.
func (b *Book) put(app string, o *engine.Object, started bool) {
	was := b.all()[app]
	var limits Limits
	if o != nil {
		var err error
		if limits, err = Read(o); err != nil {
			b.cfg.Log.Error("a quota is not in force", "error", err)
			return
		}
	}
	if was != nil && was.limits == limits {
		return
	}
	next := maps.Clone(b.all())
	if next == nil {
		next = map[string]*account{}
	}
	if delete(next, app); o != nil {
		next[app] = newAccount(app, limits, was, b.cfg.Queue.Now())
	}
	if len(next) == 0 {
		b.accounts.Store(nil)
	} else {
		b.accounts.Store(&next)
	}
	rule := limits.rule()
	if rule != nil {
		rule.Started = started && was == nil
	}
	b.cfg.Queue.SetRule(flow.Name{Kind: flow.OfQuota, App: app}, rule)
}

// newAccount makes the account of a quota that replaces another; nil: none.
func newAccount(app string, l Limits, was *account, now time.Duration) *account {
	a := &account{app: app, limits: l}
	switch {
	case l.Timers == 0 && l.Bytes == 0:
	case was != nil && was.stock != nil:
		a.stock = was.stock
	default:
		a.stock = &stock{}
	}
	if n := l.CreatesPerSecond; n > 0 {
		a.creates.Set(&flow.Limit{Rate: n, Per: time.Second, Burst: n}, now)
	}
	return a
}

// Use is what an app uses of its quota.
type Use struct {
	InFlight int  // calls
	Held     int  // tasks that the quota holds now
	HasStock bool // the quota limits the stock, which is known
	Stock    Size
}

// Use is what an app uses of its quota.
func (b *Book) Use(ctx context.Context, app string) (u Use) {
	s, _ := b.cfg.Queue.Gate(flow.Name{Kind: flow.OfQuota, App: app})
	u = Use{InFlight: b.cfg.Queue.CallsOf(app), Held: s.Waiting}
	c, err := b.Begin(ctx, app)
	if err != nil {
		return u
	}
	defer c.End()
	if a := b.all()[app]; a != nil && a.stock != nil {
		u.HasStock, u.Stock = true, a.stock.has(b.cfg.Now().UnixMilli())
	}
	return u
}

// refusedFor is for how long an app counts as one whose quota refuses something.
const refusedFor = time.Minute

// Refusing are the apps whose quota has refused a change within the last minute.
func (b *Book) Refusing() (apps []string) {
	now := b.cfg.Queue.Now()
	for app, a := range b.all() {
		if a.refusing(now) {
			apps = append(apps, app)
		}
	}
	return apps
}

func (a *account) refusing(now time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refused > 0 && now-a.refused < refusedFor
}

// Create counts a timer that an app creates, or returns the error of one that its quota
// does not allow.
func (b *Book) Create(app string) error {
	if b == nil {
		return nil
	}
	a := b.all()[app]
	if a == nil {
		return nil
	}
	if no := a.create(b.cfg.Queue.Now()); no != nil {
		return b.refuse(a, no)
	}
	return nil
}

// refuse counts a refusal, and is its error.
func (b *Book) refuse(a *account, no *refusal) error {
	b.refusals[no.what].Inc()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused = b.cfg.Queue.Now()
	return no.fault
}

func (a *account) create(now time.Duration) *refusal {
	if a.limits.CreatesPerSecond == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if by, at := a.creates.Ask(now, false); by != flow.ByNone {
		return tooFast(a.app, a.limits.CreatesPerSecond, at-now)
	}
	a.creates.Give(a.creates.Take(now, false), flow.Ended{Made: true}, now)
	return nil
}

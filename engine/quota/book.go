package quota

import (
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
	set     *object.Set
	queue   *fair.Queue[*resident.Task]
	log     *slog.Logger
	tooFast *metrics.Counter // creates that were refused

	// accounts are those of the apps that have a quota; nil: there are none. The map is not
	// changed once it is shared.
	accounts atomic.Pointer[map[string]*account]
}

// account is a quota, and what the app has used of it.
type account struct {
	limits Limits

	mu      sync.Mutex
	creates flow.Gate
	refused time.Duration // when a create was last refused, on the clock of the queue; 0: never
}

// New registers the kind of a set that is not loaded yet.
func New(set *object.Set, queue *fair.Queue[*resident.Task], counted *metrics.Set, log *slog.Logger) *Book {
	b := &Book{set: set, queue: queue, log: log, tooFast: counted.NewCounter(`xtimer_quota_refusals_total{what="creates"}`)}
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
	for _, app := range b.set.Apps(Kind) {
		b.put(app, b.set.Get(Key(app)), true)
	}
	for app := range b.all() {
		if b.set.Get(Key(app)) == nil {
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
			b.log.Error("a quota is not in force", "error", err)
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
		next[app] = newAccount(limits, b.queue.Now())
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
	b.queue.SetRule(flow.Name{Kind: flow.OfQuota, App: app}, rule)
}

func newAccount(l Limits, now time.Duration) *account {
	a := &account{limits: l}
	if n := l.CreatesPerSecond; n > 0 {
		a.creates.Set(&flow.Limit{Rate: n, Per: time.Second, Burst: n}, now)
	}
	return a
}

// Use is what an app uses of its quota.
type Use struct {
	InFlight int // calls
	Held     int // tasks that the quota holds now
}

// Use is what an app uses of its quota.
func (b *Book) Use(app string) Use {
	s, _ := b.queue.Gate(flow.Name{Kind: flow.OfQuota, App: app})
	return Use{InFlight: b.queue.CallsOf(app), Held: s.Waiting}
}

// refusedFor is for how long an app counts as one whose quota refuses something.
const refusedFor = time.Minute

// Refusing are the apps whose quota has refused a create within the last minute.
func (b *Book) Refusing() (apps []string) {
	now := b.queue.Now()
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
	err := a.create(app, b.queue.Now())
	if err != nil {
		b.tooFast.Inc()
	}
	return err
}

func (a *account) create(app string, now time.Duration) error {
	if a.limits.CreatesPerSecond == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	by, at := a.creates.Ask(now, false)
	if by != flow.ByNone {
		a.refused = now
		return tooFast(app, a.limits.CreatesPerSecond, at-now)
	}
	a.creates.Give(a.creates.Take(now, false), flow.Ended{Made: true}, now)
	return nil
}

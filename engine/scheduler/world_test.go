package scheduler_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/engine/verify"
	"xtimer/tier/memory"
)

// epoch is when a world begins: half a minute before a full hour.
var epoch = time.Date(2026, 11, 20, 16, 59, 30, 0, time.UTC)

var errDead = errors.New("this process is dead")

// world is a machine in a bubble: its disks, its clock, a receiver of calls, and
// the engine that runs on it, one life after another.
type world struct {
	t       *testing.T
	cold    *memory.Cold
	journal *disk
	offset  atomic.Int64 // of the wall clock (ns)
	config  scheduler.Config
	// before and after stand around each call of the cold tier: op is the name
	// of the method. They may sleep, and before may refuse.
	before hook[func(op string, arg any) error]
	after  hook[func(op string, arg any)]
	// mute: the cold tier does what it is told, and says that it did not.
	mute atomic.Bool
	// lost are warm entries that Load does not find, and warmFault an error of it.
	lost      map[engine.TimerID]bool
	warmFault hook[func(op string) error]
	puts      hook[func(es []engine.Entry)]                           // into the warm tier
	keeps     bool                                                    // the warm tier keeps definitions
	garbled   hook[func(id engine.TimerID, definition []byte) []byte] // what the cold tier has of a definition
	unread    map[engine.TimerID]bool                                 // timers that were garbled: what they did not call is missing
	damaged   sync.Map                                                // keys of rows of owed that are stored and cannot be read, until they are stored anew
	illegible sync.Map                                                // keys of records that are stored and cannot be read
	listed    atomic.Int64                                            // pages of history that were read
	tune      func(*scheduler.Scheduler)
	caller    func(engine.Caller) engine.Caller // what stands around the receiver; nil: nothing
	owns      func(ctx context.Context) error   // of a cold tier that another may take over; nil: of none
	node      *node                             // of those that share the cold tier; nil: it is alone

	*scheduler.Scheduler
	life    *life
	set     *metrics.Set
	all     sync.WaitGroup // lives
	starts  []int64
	crashes []int64

	mu     sync.Mutex // guards all below
	script map[string]func(c *call) reply
	calls  []*call
	named  map[string][]*call // likewise, by timer
}

// A hook is a function of a test inside a tier. A test may set it while an engine runs.
type hook[F any] struct{ f atomic.Pointer[F] }

func (h *hook[F]) set(f F) { h.f.Store(&f) }
func (h *hook[F]) get() F  { return *h.f.Load() }

// outage is a switch: while it is on, the cold tier is away, or does not do these.
func (w *world) outage(ops ...string) *atomic.Bool {
	var away atomic.Bool
	w.before.set(func(op string, _ any) error {
		if away.Load() && (len(ops) == 0 || slices.Contains(ops, op)) {
			return fmt.Errorf("the cold tier is away: %w", engine.ErrUnavailable)
		}
		return nil
	})
	return &away
}

// minutely makes a timer for each second of the minute.
func (w *world) minutely(opts ...func(*engine.Definition)) {
	for i := range 60 {
		w.make(timer(fmt.Sprint(i), cron(fmt.Sprintf("%d * * * * *", i)), opts...))
	}
}

// wantMinutely fails unless each of them was called once a minute in (from, to].
func (w *world) wantMinutely(from, to int64) {
	w.t.Helper()
	for i := range 60 {
		got := slices.DeleteFunc(dues(w.of(fmt.Sprint(i))), func(due int64) bool { return due > to })
		if diff := difference(got, grid(from, to, 60_000, int64(i)*1000)); diff != "" {
			w.t.Errorf("second %d: %s", i, diff)
		}
	}
}

// life is one process: when it is over nothing of it reaches a disk or the receiver.
type life struct {
	mu   sync.RWMutex
	dead bool
	gone chan struct{}
	stop context.CancelFunc
	end  chan error
	node uint64 // of a node: the number of its life in the table
}

func (l *life) do(f func()) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.dead {
		return errDead
	}
	f()
	return nil
}

// call is what the receiver saw.
type call struct {
	name        string
	key         engine.Key
	attempt     int
	redelivered bool
	fence       uint64
	at, ended   int64 // Unix ms; ended 0: never, for the caller had died
	url         string
	by          *life
}

// reply is what the receiver does; the zero one is 200 at once.
type reply struct {
	class engine.Class
	code  int
	dial  time.Duration // before it is sent, or not
	write time.Duration // until its first byte is written
	after time.Duration
	retry time.Duration
	body  string
	panic bool
}

var (
	ok       = reply{}
	fail     = reply{class: engine.ClassRetry, code: 500}
	reject   = reply{class: engine.ClassRejected, code: 404}
	notSent  = reply{class: engine.ClassNotSent}
	timedOut = reply{class: engine.ClassUnknown}
)

func slow(d time.Duration) reply { return reply{after: d} }

// bubble runs a test in a world of its own.
func bubble(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(epoch))
		w := newWorld(t, memory.NewCold())
		defer func() {
			w.prove()
			if w.life != nil {
				w.kill()
			}
			w.all.Wait()
		}()
		f(t, w)
	})
}

func newWorld(t *testing.T, cold *memory.Cold) *world {
	w := &world{
		t: t, cold: cold, journal: &disk{}, script: map[string]func(*call) reply{}, named: map[string][]*call{},
		lost: map[engine.TimerID]bool{}, tune: func(*scheduler.Scheduler) {},
	}
	w.before.set(func(string, any) error { return nil })
	w.after.set(func(string, any) {})
	w.warmFault.set(func(string) error { return nil })
	w.puts.set(func([]engine.Entry) {})
	w.garbled.set(func(_ engine.TimerID, definition []byte) []byte { return definition })
	return w
}

// prove holds what is in the cold tier against what the definitions say: every
// test ends with a ledger that proves itself.
func (w *world) prove() {
	if w.t.Failed() {
		return
	}
	v := verify.Request{From: epoch.Add(-48 * time.Hour).UnixMilli(), To: engine.MaxDue}
	n := 0
	_, err := verify.Offline(context.Background(), w.cold, v, w.now(), 1000*24*time.Hour, func(f *verify.Finding) error {
		if f.Kind == verify.Unproven && w.config.DiskCritical != nil || w.unread[f.Timer] {
			return nil
		}
		if n++; n < 10 {
			w.t.Errorf("the ledger: %s of %s, %s to %s, %d: %s", f.Kind, f.Name, stamp(f.Due), stamp(f.DueLast), f.Count, f.Detail)
		}
		return nil
	})
	if err != nil {
		w.t.Errorf("the ledger cannot be verified: %v", err)
	}
}

// begin is a bubble with an engine that runs.
func begin(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	bubble(t, func(t *testing.T, w *world) {
		w.start()
		f(t, w)
	})
}

func (w *world) now() int64 { return w.clock().UnixMilli() }

func (w *world) clock() time.Time { return time.Now().Add(time.Duration(w.offset.Load())) }

// step sets the wall clock.
func (w *world) step(d time.Duration) { w.offset.Add(int64(d)) }

// start begins a life: a new engine over the same disks.
func (w *world) start() {
	w.t.Helper()
	l := &life{gone: make(chan struct{}), end: make(chan error, 1)}
	cfg := w.config
	w.set = metrics.NewSet()
	cfg.Cold, cfg.Warm = &mortalCold{w.cold, w, l}, &mortalWarm{memory.NewWarm(), w, l, map[engine.TimerID][]byte{}}
	if w.owns != nil {
		cfg.Cold = &sharedCold{&mortalCold{w.cold, w, l}, w.owns}
	}
	cfg.Journal, cfg.Caller = &mortalJournal{w.journal, l, make(chan struct{}, 1)}, &receiver{w, l}
	if w.caller != nil {
		cfg.Caller = w.caller(cfg.Caller)
	}
	if w.node != nil {
		cfg.Cluster = w.node.begin(l)
	}
	cfg.Now, cfg.Metrics = w.clock, w.set
	cfg.Log = cmp.Or(w.config.Log, slog.New(slog.DiscardHandler))
	if os.Getenv("XTIMER_TEST_LOG") != "" {
		cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	e := scheduler.New(cfg)
	w.tune(e)
	w.starts = append(w.starts, w.now())
	for left := 20; ; left-- { // as a server does that waits for its tiers
		err := e.Open(context.Background())
		if err == nil {
			break
		}
		if left == 0 || !errors.Is(err, engine.ErrUnavailable) {
			w.t.Fatal(err)
		}
		time.Sleep(time.Second)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = cancel
	w.Scheduler, w.life = e, l
	w.all.Go(func() { l.end <- e.Run(ctx) })
	untilReady(e)
}

// untilReady waits until an engine is ready, and a little longer: what a test does after
// full seconds then never falls into the instant at which a loop of the engine wakes. A
// start that waits for 20 s of a slow tier is not asked 20,000,000 times.
func untilReady(e *scheduler.Scheduler) {
	for pause := time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
		if time.Sleep(pause); e.Ready() == nil {
			return
		}
	}
}

// kill ends the life at once, as kill -9 does: what the journal has not synced
// stays in the machine's memory. It does not wait.
func (w *world) kill() {
	l := w.life
	l.mu.Lock()
	l.dead = true
	l.mu.Unlock()
	close(l.gone)
	l.stop()
	w.life, w.Scheduler = nil, nil
}

// crash is kill, and a start after a while.
func (w *world) crash(down time.Duration) {
	w.t.Helper()
	w.crashes = append(w.crashes, w.now())
	w.kill()
	time.Sleep(down)
	w.start()
}

// power is crash with the machine: the unsynced tail of the journal is lost.
func (w *world) power(down time.Duration) {
	w.t.Helper()
	w.crashes = append(w.crashes, w.now())
	w.kill()
	w.journal.drop()
	time.Sleep(down)
	w.start()
}

// stop ends the life in good order.
func (w *world) stop() error {
	l := w.life
	l.stop()
	err := <-l.end
	l.mu.Lock()
	l.dead = true // what the drain has cut off goes nowhere any more
	l.mu.Unlock()
	close(l.gone)
	w.life, w.Scheduler = nil, nil
	return err
}

// timer is a definition with a name, changed by options.
func timer(name string, s engine.Schedule, opts ...func(*engine.Definition)) engine.Definition {
	d := engine.NewDefinition()
	d.App, d.Name, d.Schedule = "app", name, s
	d.Callback.URL = "http://127.0.0.1:1/" + name
	for _, o := range opts {
		o(&d)
	}
	return d
}

func every(d time.Duration) engine.Schedule { return engine.Schedule{Every: d} }
func cron(spec string) engine.Schedule      { return engine.Schedule{Cron: spec} }
func delay(d time.Duration) engine.Schedule { return engine.Schedule{Delay: d, HasDelay: true} }
func at(ms int64) engine.Schedule           { return engine.Schedule{At: ms} }

func misfire(p engine.MisfirePolicy, window time.Duration) func(*engine.Definition) {
	return func(d *engine.Definition) { d.Misfire = engine.Misfire{Policy: p, Window: window} }
}

func overlap(o engine.Overlap) func(*engine.Definition) {
	return func(d *engine.Definition) { d.Overlap = o }
}

func atMostOnce(d *engine.Definition) { d.Delivery = engine.AtMostOnce }

func timeout(v time.Duration) func(*engine.Definition) {
	return func(d *engine.Definition) { d.Callback.Timeout = v }
}

func retry(attempts int, backoff time.Duration, multiplier float64) func(*engine.Definition) {
	return func(d *engine.Definition) {
		d.Retry = engine.Retry{
			MaxAttempts: attempts, Backoff: backoff, Multiplier: multiplier,
			MaxBackoff: 24 * time.Hour, MaxAge: 30 * 24 * time.Hour,
		}
	}
}

// make creates a timer that must be made.
func (w *world) make(d engine.Definition) engine.TimerID {
	w.t.Helper()
	c := w.Create(context.Background(), d, nil)
	if c.Err != nil {
		w.t.Fatalf("create %s: %v", d.Name, c.Err)
	}
	return c.View.ID
}

// replies scripts the receiver for a timer: the n-th call gets the n-th reply,
// and what comes later the last one.
func (w *world) replies(name string, rs ...reply) {
	n := 0
	w.behave(name, func(*call) reply {
		r := rs[min(n, len(rs)-1)]
		n++
		return r
	})
}

// behave scripts the receiver for a timer.
func (w *world) behave(name string, f func(*call) reply) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.script[name] = f
}

// of are the calls that the receiver saw of a timer.
func (w *world) of(name string) []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	var cs []call
	for _, c := range w.named[name] {
		cs = append(cs, *c)
	}
	return cs
}

// saw notes a call; w.mu is held.
func (w *world) saw(c *call) {
	w.calls = append(w.calls, c)
	w.named[c.name] = append(w.named[c.name], c)
}

// dues are the dues that were called, in the order of calls.
func dues(cs []call) []int64 {
	ds := make([]int64, len(cs))
	for i, c := range cs {
		ds[i] = c.key.Due
	}
	return ds
}

// settle lets all that is under way reach the cold tier.
func (w *world) settle() { time.Sleep(5 * time.Second) }

// records are all records of a timer in the cold tier by due, oldest first.
func (w *world) records(id engine.TimerID) []*engine.Task {
	w.t.Helper()
	var out []*engine.Task
	for before := (engine.Key{}); ; {
		ts, next, err := w.cold.Tasks(context.Background(), engine.TaskFilter{Timer: id}, before, 1000)
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, ts...)
		if before = next; before == (engine.Key{}) {
			break
		}
	}
	slices.Reverse(out)
	return out
}

// record is the record of one task in the cold tier.
func (w *world) record(k engine.Key) *engine.Task {
	w.t.Helper()
	t, err := w.cold.Task(context.Background(), k)
	if err != nil {
		w.t.Fatalf("task %s: %v", k, err)
	}
	return t
}

// verdicts says what became of each due of a timer: "due+5s succeeded", one word
// for each, or a run "due+5s…15s ×3 skipped misfire".
func (w *world) verdicts(id engine.TimerID, from int64) []string {
	w.t.Helper()
	var out []string
	for _, t := range w.records(id) {
		s := fmt.Sprint(time.Duration(t.Key.Due-from) * time.Millisecond)
		if t.Count > 1 {
			s += fmt.Sprintf("…%v ×%d", time.Duration(t.DueLast-from)*time.Millisecond, t.Count)
		}
		s += " " + t.Status.String()
		if t.Reason != "" {
			s += " " + t.Reason
		}
		out = append(out, s)
	}
	return out
}

// exact holds the calls and the records of a timer against the dues that it
// should have had: each called once, in order, never early, at most late ms
// late, and succeeded.
func (w *world) exact(name string, id engine.TimerID, want []int64, late int64) {
	w.t.Helper()
	cs := w.of(name)
	if got := dues(cs); !slices.Equal(got, want) {
		w.t.Errorf("%s was called for %d dues, want %d: %s", name, len(got), len(want), difference(got, want))
	}
	for _, c := range cs {
		if c.at < c.key.Due || c.at > c.key.Due+late {
			w.t.Errorf("%s, due %s, was called %d ms after it", name, stamp(c.key.Due), c.at-c.key.Due)
		}
		if c.redelivered || c.attempt != 1 {
			w.t.Errorf("%s, due %s: attempt %d, redelivered %v", name, stamp(c.key.Due), c.attempt, c.redelivered)
		}
	}
	var got []int64
	for _, r := range w.records(id) {
		if r.Status != engine.Succeeded || r.Count > 1 || r.Ended == 0 || len(r.Attempts) != 1 {
			w.t.Errorf("%s, due %s: the record says %+v", name, stamp(r.Key.Due), *r)
		}
		got = append(got, r.Key.Due)
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("%s has records of %d dues, want %d: %s", name, len(got), len(want), difference(got, want))
	}
}

// difference says in short how two lists of dues differ.
func difference(got, want []int64) string {
	n := map[int64]int{}
	for _, d := range got {
		n[d]++
	}
	for _, d := range want {
		n[d]--
	}
	var out []string
	for _, d := range slices.Sorted(maps.Keys(n)) {
		if n[d] != 0 {
			out = append(out, fmt.Sprintf("%s %+d", stamp(d), n[d]))
		}
	}
	if len(out) > 8 {
		out = append(out[:8], "…")
	}
	return strings.Join(out, ", ")
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("02T15:04:05.000") }

// grid is every due k·step + phase in (from, to].
func grid(from, to, step, phase int64) []int64 {
	var ds []int64
	for d := (from-phase)/step*step + phase; d <= to; d += step {
		if d > from {
			ds = append(ds, d)
		}
	}
	return ds
}

func equal[T cmp.Ordered](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func (w *world) metric(name string) (v float64) {
	w.t.Helper()
	var b bytes.Buffer
	w.set.WritePrometheus(&b)
	for line := range strings.SplitSeq(b.String(), "\n") {
		if rest, found := strings.CutPrefix(line, name+" "); found {
			if _, err := fmt.Sscan(rest, &v); err != nil {
				w.t.Fatal(err)
			}
			return v
		}
	}
	w.t.Fatalf("there is no metric %s", name)
	return 0
}

// receiver takes the calls of one life.
type receiver struct {
	w *world
	l *life
}

func (r *receiver) Call(c *engine.Call) engine.Outcome {
	w := r.w
	seen := &call{
		name: c.Timer.Name, key: c.Key, attempt: c.Attempt, redelivered: c.Redelivered, fence: c.Fence, at: w.now(), url: c.Timer.Callback.URL, by: r.l,
	}
	if w.node == nil && c.Fence != 0 {
		w.t.Errorf("%s was called under fence %d by a process that is alone", c.Timer.Name, c.Fence)
	}
	var rep reply
	started := time.Now()
	dead := r.l.do(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if f := w.script[c.Timer.Name]; f != nil {
			rep = f(seen)
		}
	})
	if rep.dial > 0 {
		select {
		case <-time.After(rep.dial):
		case <-r.l.gone:
			return engine.Outcome{Class: engine.ClassNotSent, ErrorClass: "dead"}
		}
	}
	out := engine.Outcome{}
	if dead == nil && rep.class != engine.ClassNotSent {
		if !c.Send(func() bool {
			time.Sleep(rep.write)
			dead = r.l.do(func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				seen.at, out.Sent = w.now(), w.clock()
				w.saw(seen)
				w.node.calls(r.l, seen)
			})
			return true
		}) {
			return out
		}
	}
	if dead != nil {
		return engine.Outcome{Class: engine.ClassNotSent, ErrorClass: "dead"}
	}
	if rep == timedOut {
		rep.after = c.Timer.Callback.Timeout
	}
	if rep.after > 0 {
		select {
		case <-time.After(rep.after):
		case <-r.l.gone:
			return engine.Outcome{Class: engine.ClassUnknown, ErrorClass: "dead"}
		}
	}
	if rep.panic {
		panic("a call that panics")
	}
	w.mu.Lock()
	seen.ended = w.now()
	w.mu.Unlock()
	out.Class, out.Code, out.RetryAfter, out.Took = rep.class, rep.code, rep.retry, time.Since(started)
	out.Response = []byte(rep.body)
	switch out.Class {
	case engine.ClassOK:
		out.Code = 200
	case engine.ClassNotSent:
		out.Sent, out.ErrorClass = time.Time{}, "refused"
	case engine.ClassUnknown:
		out.ErrorClass = "timeout"
	default:
		out.ErrorClass = "status"
	}
	return out
}

// disk is a journal's: records, of which a tail may not be synced.
type disk struct {
	mu      sync.Mutex
	first   int // records before it are forgotten
	records []any
	synced  int           // records[:synced-first] are
	pace    time.Duration // between an append and its sync; 0: 2 ms
	slow    time.Duration // what a sync that is waited for takes; 0: 1 ms
	// kept are the records that are forgotten, and settled as Forget was told; nil: they are dropped.
	kept    []any
	settled *engine.Watermarks
}

// tune sets how fast it is.
func (d *disk) tune(pace, slow time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pace, d.slow = pace, slow
}

// length is how many records it has.
func (d *disk) length() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.records)
}

// drop loses the unsynced tail.
func (d *disk) drop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.records = d.records[:max(d.synced-d.first, 0)]
}

func (d *disk) append(x any) engine.Position {
	d.records = append(d.records, x)
	return engine.Position(d.first + len(d.records) - 1)
}

// mortalJournal is the journal of one life.
type mortalJournal struct {
	d    *disk
	l    *life
	kick chan struct{}
}

func (j *mortalJournal) Open(context.Context) error               { return nil }
func (j *mortalJournal) Close() error                             { return nil }
func (j *mortalJournal) Backup(context.Context, string) error     { return errors.New("no backup") }
func (j *mortalJournal) Begin(b engine.Begun) (p engine.Position) { return j.add(b) }
func (j *mortalJournal) Finish(task []byte) (p engine.Position)   { return j.add(bytes.Clone(task)) }

func (j *mortalJournal) locked(f func()) error {
	return j.l.do(func() {
		j.d.mu.Lock()
		defer j.d.mu.Unlock()
		f()
	})
}

func (j *mortalJournal) add(x any) (p engine.Position) {
	_ = j.locked(func() { p = j.d.append(x) })
	select {
	case j.kick <- struct{}{}:
	default:
	}
	return p
}

func (j *mortalJournal) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return j.sync()
		case <-j.kick:
			j.d.mu.Lock()
			pace := cmp.Or(j.d.pace, 2*time.Millisecond)
			j.d.mu.Unlock()
			select {
			case <-ctx.Done():
			case <-time.After(pace):
			}
			_ = j.sync()
		}
	}
}

func (j *mortalJournal) sync() error {
	return j.locked(func() { j.d.synced = j.d.first + len(j.d.records) })
}

func (j *mortalJournal) Sync(_ context.Context, p engine.Position) error {
	var next engine.Position
	if err := j.locked(func() { next = engine.Position(j.d.first + len(j.d.records)) }); err != nil {
		return err
	}
	if p >= next {
		panic(fmt.Sprintf("BUG: sync of position %d, which no record has", p)) // an error is tried again, and no test sees it
	}
	j.d.mu.Lock()
	slow := cmp.Or(j.d.slow, time.Millisecond)
	j.d.mu.Unlock()
	time.Sleep(slow)
	return j.sync()
}

func (j *mortalJournal) Next() (p engine.Position) {
	_ = j.locked(func() { p = engine.Position(j.d.first + len(j.d.records)) })
	return p
}

func (j *mortalJournal) Forget(p engine.Position, w *engine.Watermarks) error {
	return j.locked(func() {
		if d := j.d; d.settled != nil {
			if w != nil {
				for i, t := range w {
					d.settled[i] = cmp.Or(t, d.settled[i])
				}
			}
			d.kept = append(d.kept, d.records[:min(max(int(p)-d.first, 0), len(d.records))]...)
		}
		n := min(int(p)-j.d.first, len(j.d.records))
		if n <= 0 {
			return
		}
		j.d.records = slices.Clone(j.d.records[n:])
		j.d.first += n
		j.d.synced = max(j.d.synced, j.d.first)
	})
}

func (j *mortalJournal) Settled() (w *engine.Watermarks) {
	_ = j.locked(func() { w = j.d.settled })
	return w
}

func (j *mortalJournal) Replay(kept bool, begun func(engine.Begun) error, finished func([]byte) error) error {
	var rs []any
	err := j.locked(func() {
		if kept {
			rs = j.d.kept
		}
		rs = slices.Concat(rs, j.d.records)
	})
	if err != nil {
		return err
	}
	for _, r := range rs {
		var err error
		switch r := r.(type) {
		case engine.Begun:
			err = begun(r)
		case []byte:
			err = finished(bytes.Clone(r))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *mortalJournal) Unsynced() (int64, time.Duration) { return 0, 0 }

func (j *mortalJournal) Len() (n int64) {
	_ = j.locked(func() { n = int64(len(j.d.records)) })
	return n
}

// mortalWarm is the warm tier of one life.
type mortalWarm struct {
	*memory.Warm
	w           *world
	l           *life
	definitions map[engine.TimerID][]byte // when it keeps them; guarded by w.mu
}

// keep keeps a definition unless there is a later one.
func (m *mortalWarm) keep(id engine.TimerID, b []byte) {
	if was := m.definitions[id]; m.w.keeps && b != nil && (was == nil || versionOf(was) <= versionOf(b)) {
		m.definitions[id] = bytes.Clone(b)
	}
}

func versionOf(definition []byte) uint32 {
	var t engine.Timer
	if err := engine.DecodeTimerHead(definition, &t); err != nil {
		panic(err)
	}
	return t.Version
}

func (m *mortalWarm) Update(_ context.Context, id engine.TimerID, definition []byte) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	if definition == nil {
		delete(m.definitions, id)
	} else if m.definitions[id] != nil {
		m.keep(id, definition)
	}
}

func (m *mortalWarm) Add(ctx context.Context, es []engine.Entry) (err error) {
	if err := m.w.warmFault.get()("Add"); err != nil {
		return err
	}
	m.w.mu.Lock()
	for _, e := range es {
		delete(m.w.lost, e.ID)
		m.keep(e.ID, e.Definition)
	}
	m.w.mu.Unlock()
	m.w.puts.get()(es)
	return m.Warm.Add(ctx, es)
}

func (m *mortalWarm) Load(ctx context.Context, of engine.Set, minute int64, yield func([]engine.Entry) error) error {
	if err := m.w.warmFault.get()("Load"); err != nil {
		return err
	}
	return m.Warm.Load(ctx, of, minute, func(es []engine.Entry) error {
		m.w.mu.Lock()
		es = slices.DeleteFunc(es, func(e engine.Entry) bool { return m.w.lost[e.ID] })
		for i := range es {
			es[i].Definition = m.definitions[es[i].ID]
		}
		m.w.mu.Unlock()
		return yield(es)
	})
}

// mortalCold is the cold tier of one life.
type mortalCold struct {
	*memory.Cold
	w *world
	l *life
}

func (m *mortalCold) do(op string, arg any, f func() error) error {
	if err := m.w.before.get()(op, arg); err != nil {
		return err
	}
	var err error
	if dead := m.l.do(func() {
		if err = m.w.node.fenced(op); err == nil {
			err = f()
		}
	}); dead != nil {
		return dead
	}
	m.w.after.get()(op, arg)
	if m.w.mute.Load() {
		return fmt.Errorf("the answer is lost: %w", engine.ErrUnavailable)
	}
	return err
}

func (m *mortalCold) Apply(ctx context.Context, c *engine.Change) (a engine.Applied, err error) {
	err = m.do("Apply", c, func() (err error) { a, err = m.Cold.Apply(ctx, c); return err })
	return a, err
}

func (m *mortalCold) ApplyAll(ctx context.Context, cs []*engine.Change) (out []engine.Applied) {
	if err := m.do("ApplyAll", cs, func() error { out = m.Cold.ApplyAll(ctx, cs); return nil }); err != nil {
		out = make([]engine.Applied, len(cs))
		for i := range out {
			out[i].Err = err
		}
	}
	return out
}

func (m *mortalCold) Settle(ctx context.Context, s *engine.Settlement) error {
	return m.do("Settle", s, func() error {
		for i := range s.Owe {
			if s.Owe[i].Damaged != nil {
				m.w.t.Errorf("the damaged row of %s is stored", s.Owe[i].Key)
			}
			m.w.damaged.Delete(s.Owe[i].Key)
		}
		return m.Cold.Settle(ctx, s)
	})
}

func (m *mortalCold) Timer(ctx context.Context, id engine.TimerID) (t *engine.Timer, err error) {
	err = m.do("Timer", id, func() (err error) { t, err = m.Cold.Timer(ctx, id); return err })
	return t, err
}

func (m *mortalCold) Load(ctx context.Context, ids []engine.TimerID) (bs [][]byte, err error) {
	err = m.do("Load", ids, func() (err error) { bs, err = m.Cold.Load(ctx, ids); return err })
	for i, b := range bs {
		if b != nil {
			bs[i] = m.w.garbled.get()(ids[i], b)
		}
	}
	return bs, err
}

func (m *mortalCold) Raise(ctx context.Context, bs []engine.Bound) error {
	return m.do("Raise", bs, func() error { return m.Cold.Raise(ctx, bs) })
}

func (m *mortalCold) Sweep(ctx context.Context, now, finishedBefore, historyBefore int64) (more bool, err error) {
	err = m.do("Sweep", nil, func() (err error) {
		more, err = m.Cold.Sweep(ctx, now, finishedBefore, historyBefore)
		return err
	})
	return more, err
}

func (m *mortalCold) Counts(ctx context.Context) (n engine.Counts, err error) {
	err = m.do("Counts", nil, func() (err error) { n, err = m.Cold.Counts(ctx); return err })
	return n, err
}

// Due and Owed take their pages under the life and yield them outside of it.
func (m *mortalCold) Due(ctx context.Context, of engine.Set, from, to int64, yield func([]engine.Candidate) error) error {
	var pages [][]engine.Candidate
	err := m.do("Due", [2]int64{from, to}, func() error {
		return m.Cold.Due(ctx, of, from, to, func(cs []engine.Candidate) error {
			cs = slices.Clone(cs)
			for i := range cs {
				if m.w.keeps && cs[i].Definition == nil { // as the cold tier beside such a warm one does
					bs, err := m.Cold.Load(ctx, []engine.TimerID{cs[i].ID})
					if err != nil {
						return err
					}
					cs[i].Definition = bs[0]
				}
				if b := cs[i].Definition; b != nil {
					cs[i].Definition = m.w.garbled.get()(cs[i].ID, b)
				}
			}
			pages = append(pages, cs)
			return nil
		})
	})
	for _, p := range pages {
		if err == nil {
			err = yield(p)
		}
	}
	return err
}

// damage hides what is stored in rows that cannot be read.
func (m *mortalCold) damage(os []engine.Owed) []engine.Owed {
	os = slices.Clone(os)
	for i, o := range os {
		if _, is := m.w.damaged.Load(o.Key); is {
			os[i] = engine.Owed{Key: o.Key, NotBefore: o.NotBefore, Damaged: engine.ReadOwed(o.Key, nil).Damaged}
		}
	}
	return os
}

// Tasks ends a page before a record that cannot be read, or fails on it.
func (m *mortalCold) Tasks(ctx context.Context, f engine.TaskFilter, before engine.Key, limit int) ([]*engine.Task, engine.Key, error) {
	m.w.listed.Add(1)
	ts, next, err := m.Cold.Tasks(ctx, f, before, limit)
	for i, t := range ts {
		if _, is := m.w.illegible.Load(t.Key); !is {
			continue
		}
		if i > 0 {
			return ts[:i], ts[i-1].Key, err
		}
		return nil, engine.Key{}, &engine.Damage{Row: "a record", Key: t.Key, Err: errors.New("its bytes are wrong")}
	}
	return ts, next, err
}

func (m *mortalCold) Owed(ctx context.Context, of engine.Set, from, to int64, yield func([]engine.Owed) error) error {
	var pages [][]engine.Owed
	err := m.do("Owed", [2]int64{from, to}, func() error {
		return m.Cold.Owed(ctx, of, from, to, func(os []engine.Owed) error {
			pages = append(pages, m.damage(os))
			return nil
		})
	})
	for _, p := range pages {
		if err == nil {
			err = yield(p)
		}
	}
	return err
}

func (m *mortalCold) Task(ctx context.Context, k engine.Key) (t *engine.Task, err error) {
	err = m.do("Task", k, func() (err error) { t, err = m.Cold.Task(ctx, k); return err })
	return t, err
}

func (m *mortalCold) OwedPage(ctx context.Context, id engine.TimerID, after int64, limit int) (os []engine.Owed, err error) {
	err = m.do("OwedPage", id, func() (err error) { os, err = m.Cold.OwedPage(ctx, id, after, limit); return err })
	return m.damage(os), err
}

func (m *mortalCold) Lanes(ctx context.Context, of engine.Set, to int64) (ids []engine.Lane, err error) {
	err = m.do("Lanes", to, func() (err error) { ids, err = m.Cold.Lanes(ctx, of, to); return err })
	return ids, err
}

func (m *mortalCold) OwedIn(ctx context.Context, of engine.Set, lane engine.Lane, after engine.Place, to int64, limit int) (os []engine.Owed, err error) {
	err = m.do("OwedIn", lane, func() (err error) {
		os, err = m.Cold.OwedIn(ctx, of, lane, after, to, limit)
		return err
	})
	return m.damage(os), err
}

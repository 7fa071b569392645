package alert

import (
	"context"
	"crypto/rand"
	"hash/maphash"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/engine/object"
	"xtimer/engine/process"
	"xtimer/engine/secret"
)

// Config of an Alerter.
type Config struct {
	Objects *object.Set
	Cold    engine.Cold
	// Send delivers a message; see Delivery. It returns within a minute.
	Send func(ctx context.Context, d *Delivery) Result
	// States are the states that hold now; nil: nobody knows. It is asked every few seconds
	// while some rule is about states.
	States func() []State
	// Leads reports whether this one of several nodes judges now, for all of them, by what is
	// in history; nil: the process is alone, and judges what its own engine tells.
	Leads   func() bool
	Link    string // where people look, in messages; "": nowhere
	Log     *slog.Logger
	Metrics *metrics.Set
	Now     func() time.Time // the wall clock; nil: time.Now
}

// Alerter has the rules in force and the open incidents.
type Alerter struct {
	cfg     Config
	matcher atomic.Pointer[matcher] // nil: there are no rules
	ring    ring
	watch   watch
	box     *outbox
	// What was sent to the channels lately.
	delivered deliveries
	renewed   atomic.Bool // rules were changed since the alerter looked
	mutes     mutes

	storing sync.Mutex // held while incidents are stored

	mu     sync.Mutex // guards what follows
	judge  *judge
	open   map[string]*Incident // by id
	ending map[string]*Incident // likewise: closed, and not yet stored or told of
	seen   ends                 // what was judged lately, so that a look into history counts nothing twice
	late   recent[uint32]       // likewise, the lateness (ms) of first attempts
	asked  time.Time            // when it asked for states
	looked time.Time            // when it looked for timers that are gone
	last   int64                // the latest end (Unix ms) that was judged
	lead   lead
	ask    Ask // nil: there are no other nodes
	// Messages that wait until their incidents are stored.
	unsaved []unsaved
	saved   int64 // the cursor as it is stored

	// The rest is Run's own: what was taken from the ring and is not judged yet, what is to be
	// read from history, and whether the tier could not be read last.
	taken   queue[event]
	gaps    []gap
	unsure  []engine.TimerID // those whose last task is to be asked for
	trouble bool
	clock   clock
	// When the open incidents were gone through, how long that took (3 ms for 10,000), and in
	// how long it is to be done again; 0 or less: it was done in this look.
	passed   time.Time
	passTook time.Duration
	nextPass time.Duration
}

// New returns an alerter; it does nothing before Run.
func New(cfg Config) *Alerter {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	a := &Alerter{cfg: cfg, open: map[string]*Incident{}, ending: map[string]*Incident{}, seen: ends{seed: maphash.MakeSeed()}}
	a.ring.wake, a.ring.events.most, a.ring.briefs.most = make(chan struct{}, 1), ringSize, mostBriefs
	a.judge = newJudge(func() string { return strings.ToLower(rand.Text()[:16]) })
	a.box = newOutbox(a)
	cfg.Objects.Register(object.Kind{Name: RuleKind, Changed: a.rulesChanged, Check: a.checkRule})
	cfg.Objects.Register(object.Kind{Name: ChannelKind, Changed: a.channelChanged})
	cfg.Objects.UsedBy(ChannelKind, a.rulesOf)
	cfg.Objects.UsedBy(secret.Kind, a.channelsOf)
	cfg.Objects.Register(object.Kind{Name: MuteKind, Changed: a.mutesChanged})
	cfg.Objects.Register(object.Kind{Name: incidentKind, Uncounted: true})
	cfg.Objects.Register(object.Kind{Name: cursorKind, Uncounted: true})
	a.ring.lost = cfg.Metrics.NewCounter("xtimer_alert_overflow_total")
	cfg.Metrics.NewGauge("xtimer_alert_queue", func() float64 { return float64(a.box.len()) })
	for _, severity := range []string{"critical", "warning"} {
		cfg.Metrics.NewGauge(`xtimer_incidents{severity="`+severity+`"}`, func() float64 { return float64(a.count(severity)) })
	}
	return a
}

func (a *Alerter) count(severity string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, i := range a.open {
		if i.Severity == severity {
			n++
		}
	}
	return n
}

// checkRule refuses a rule that names a channel which is not there.
func (a *Alerter) checkRule(k engine.ObjectKey, next []byte) error {
	if next == nil {
		return nil
	}
	r, ok := read[Rule](&engine.Object{Body: next})
	if !ok {
		return nil
	}
	for _, c := range r.Channels {
		if a.cfg.Objects.Get(engine.ObjectKey{Kind: ChannelKind, App: k.App, Name: c}) == nil {
			return engine.Invalid("channels", "unknown_channel", "the app has no channel %q", c)
		}
	}
	return nil
}

// rulesChanged has new rules looked at: by the engine at once, by the alerter soon.
func (a *Alerter) rulesChanged(engine.ObjectKey) {
	m := &matcher{apps: map[string]wordSet{}}
	for app, list := range a.rules() {
		for _, r := range list {
			m.apps[app] |= r.on
			if !r.on.has(firstAttempt) {
				continue
			}
			if m.late == nil {
				m.late = map[string]time.Duration{}
			}
			if least, is := m.late[app]; !is || r.Late < least {
				m.late[app] = r.Late
			}
		}
	}
	if len(m.apps) == 0 {
		m = nil
	}
	a.matcher.Store(m)
	a.renewed.Store(true)
	a.ring.poke()
}

func (a *Alerter) rules() map[string][]*ruleAt {
	all := map[string][]*ruleAt{}
	for _, app := range a.cfg.Objects.Apps(RuleKind) {
		for _, o := range a.cfg.Objects.List(RuleKind, app) {
			if r, ok := read[Rule](o); ok {
				all[app] = append(all[app], newRuleAt(app, o.Name, r))
			}
		}
	}
	return all
}

// Times of the alerter.
const (
	tick        = time.Second
	saveEvery   = 5 * time.Second
	askEvery    = 5 * time.Second
	lookEvery   = 10 * time.Second // at whether the timers of incidents are still there
	mostLooked  = 1000
	forgetEvery = time.Minute
	keptClosed  = 7 * 24 * time.Hour
	furthestDue = 24 * time.Hour // before the end of a task that history is searched for
	mostTurn    = 2 * time.Millisecond
	saveShare   = 9 // times what a save took, the next one waits
	mostRest    = 5 * time.Second
	// For how many times what a look took the alerter rests. A wake-up that was late by
	// busyAfter says that others wait for the processors, too. Failures that a look leaves
	// waiting are a burst, and most bursts are over after burstTime.
	restIdle, restBusy, restBurst = 3, 19, 99
	busyAfter                     = time.Millisecond
	burstTime                     = 10 * time.Second
	passShare                     = 99 // times what a pass through the open incidents took, the next one waits
)

// restAfter is how long the alerter rests after a look that took so long. Late is how late the
// alerter woke after its last rest; waited is how long the oldest failure has waited (0: none waits).
// So the alerter takes a quarter of a processor at most, a twentieth while others wait for one, and
// a hundredth in the first 10 s of a burst. A failure that comes meanwhile is seen after mostRest at
// the latest.
func restAfter(took, late, waited time.Duration) time.Duration {
	share := time.Duration(restIdle)
	switch {
	case waited > 0 && waited < burstTime:
		share = restBurst
	case late > busyAfter:
		share = restBusy
	}
	return min(share*took, mostRest)
}

// oldest is when (Unix ms) the first of those ended that wait.
func (a *Alerter) oldest() (at int64, waits bool) {
	if ev := a.taken.first(1); len(ev) > 0 {
		return ev[0].Ended, true
	}
	return a.ring.oldest()
}

// waited is how long the oldest failure has waited, 1 ns at least; 0: none waits.
func (a *Alerter) waited() time.Duration {
	at, waits := a.oldest()
	if !waits {
		return 0
	}
	if age := a.now() - at; age >= 0 {
		return max(time.Duration(age)*time.Millisecond, 1)
	}
	return burstTime // the clock was set back since
}

// Run judges what the ring has, until ctx ends. It begins with what ended since the cursor.
func (a *Alerter) Run(ctx context.Context) error {
	defer a.box.stop()
	if a.cfg.Leads == nil {
		a.restore()
	}
	var forgetting sync.WaitGroup
	defer forgetting.Wait()
	forgetting.Go(func() { a.forgetOld(ctx) })
	stored, took, late := true, time.Duration(0), time.Duration(0)
	for saved, expired := time.Now(), time.Now(); ; {
		wait := tick
		if a.cfg.Leads == nil && a.isIdle() {
			wait = time.Hour
		}
		if a.nextPass > 0 {
			wait = a.nextPass
		}
		select {
		case <-ctx.Done():
			if a.mayJudge() {
				a.save(context.WithoutCancel(ctx))
			}
			return nil
		case <-a.ring.wake:
		case <-time.After(wait):
		}
		if a.matcher.Load() == nil {
			a.ring.clear() // a later rule must not count what waits
		}
		if a.cfg.Leads != nil && !a.takeLead(ctx) {
			if now := time.Now(); now.Sub(expired) >= tick {
				a.ring.expire(now.Add(-keptFirst).UnixMilli())
				expired = now
			}
			continue
		}
		began := time.Now()
		urgent := a.work(ctx)
		rest := restAfter(time.Since(began), late, a.waited())
		if from := time.Now(); from.Sub(saved) >= max(saveEvery, saveShare*took) {
			stored = a.save(ctx)
			saved = time.Now()
			took = saved.Sub(from)
		} else if urgent && stored {
			stored = a.saveNews(ctx)
		}
		if a.nextPass <= 0 { // else the incidents that are new were not stored
			a.release(nil)
		}
		from := time.Now()
		process.Sleep(ctx, rest) // with many open incidents a look takes its time, and what comes waits together
		late = time.Since(from) - rest
	}
}

func (a *Alerter) isIdle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.open)+len(a.ending) == 0 && len(a.box.failing()) == 0 && a.saved == a.last && !a.judge.hasStates() && a.taken.len+len(a.gaps)+len(a.unsure) == 0
}

// work judges what waits, and repeats and closes what is to be. It reports whether that is to
// be stored at once: an incident was opened or closed, or the first rule is in force.
func (a *Alerter) work(ctx context.Context) (urgent bool) {
	a.mu.Lock()
	a.readClock()
	if a.last == 0 && a.matcher.Load() != nil {
		a.last, urgent = a.now()-1, true
	}
	if a.renewed.Swap(false) {
		a.asked = time.Time{} // a new rule may be about a state
		a.skipFormer()
		for _, i := range a.judge.setRules(a.inForce(), a.now()) {
			a.closed(i)
		}
	}
	a.mu.Unlock()
	a.judgeWaiting(ctx)
	a.fillGaps(ctx)
	a.askLast(ctx)
	if a.cfg.Leads != nil {
		a.follow(ctx)
	}
	a.closeGone(ctx)
	a.unmute(ctx)
	states, asked := a.askStates()
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if asked {
		a.judgeStates(states, now)
	}
	from := time.Now()
	if a.nextPass = passShare*a.passTook - from.Sub(a.passed); a.nextPass > 0 {
		return urgent
	}
	for _, i := range a.judge.pass(now, a.watch.sawSuccess) {
		a.closed(i)
	}
	for _, i := range a.open {
		urgent = urgent || i.fresh
		if i.Next != 0 && i.Next <= now && i.Acked == 0 {
			a.tell(i, "incident.repeated")
		}
	}
	for _, i := range a.ending {
		urgent = urgent || i.changed
	}
	a.watch.replace(a.judge.watched())
	if a.taken.len == 0 {
		a.ring.watched()
	}
	a.passed = time.Now()
	a.passTook = a.passed.Sub(from)
	return urgent
}

// askStates asks for the states, if it is time to and a rule is about one.
func (a *Alerter) askStates() (all []State, asked bool) {
	a.mu.Lock()
	channels := a.box.failing()
	if now := time.Now(); now.Sub(a.asked) >= askEvery {
		a.asked, asked = now, a.judge.hasStates() || len(channels) > 0
	}
	a.mu.Unlock()
	if asked && a.cfg.States != nil {
		all = a.withOthers(a.cfg.States())
	}
	return append(all, channels...), asked
}

// judgeStates judges the states. a.mu is held.
func (a *Alerter) judgeStates(all []State, now int64) {
	opened, closed := a.judge.states(now, all)
	for _, i := range closed {
		a.closed(i)
	}
	for _, i := range opened {
		a.open[i.ID], i.fresh = i, true
		i.Muted = a.muted(i.App, "", nil)
		a.tell(i, "incident.opened")
	}
}

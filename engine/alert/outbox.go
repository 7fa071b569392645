package alert

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"xtimer/engine"
	"xtimer/engine/process"
)

// Delivery is a message for a channel.
type Delivery struct {
	App     string
	Channel Channel
	Message Message
}

// Message is what a channel is told.
type Message struct {
	Type      string     `json:"type"` // incident.opened, repeated, recovered; digest; test
	ID        string     `json:"id"`   // the same when it is repeated
	Incident  *Incident  `json:"-"`
	Incidents []Incident `json:"-"`               // of a digest: the largest, at most 20
	Count     int        `json:"count,omitempty"` // of a digest: how many there are
	Link      string     `json:"link,omitempty"`
}

// Result is what came of a delivery.
type Result struct {
	Delivered bool
	Final     bool   // a repeat would not help
	Status    int    // of the answer; 0: there was none
	Answer    string // its beginning
	Error     string
	Secret    string        // with engine.SecretMissing as the error: its name
	After     time.Duration // how long the channel asked to wait; 0: it did not
}

// outcome is what came of one attempt.
func (r *Result) outcome() string {
	switch {
	case r.Delivered:
		return "delivered"
	case r.Final:
		return "refused"
	}
	return "retrying"
}

// Times and bounds of the outbox.
const (
	firstRetry   = 5 * time.Second
	longestRetry = 5 * time.Minute
	giveUpAfter  = time.Hour
	mostNamed    = 20
	mostTests    = 6      // of an app in a minute
	mostWaiting  = 10_000 // messages of a channel; more replace the oldest
)

// apart is the time between two messages to a channel of a kind, where that is bounded.
var apart = map[string]time.Duration{"slack": time.Second, "feishu": 200 * time.Millisecond}

// crowded is for how long after each full and half hour Feishu has the most messages, and refuses
// some (code 11232).
const crowded = 20 * time.Second

// spread is how long a message to a channel of a kind waits before it is sent: the messages to Feishu
// of a crowded time are spread over as long.
func spread(kind string, now time.Time) time.Duration {
	if kind != "feishu" || now.Sub(now.Truncate(30*time.Minute)) >= crowded {
		return 0
	}
	return rand.N(crowded)
}

// outbox has a goroutine for each channel that has something to send, so that one that hangs
// holds up no other.
type outbox struct {
	a      *Alerter
	ctx    context.Context
	cancel context.CancelFunc
	works  sync.WaitGroup

	mu    sync.Mutex
	boxes map[engine.ObjectKey]*box // of channels that were sent to, while they are there; guarded by mu
	over  bool
	// A send ends with life: from then on another node judges, and sends the messages.
	life context.Context
	end  context.CancelFunc
	// How many attempts in a row each channel did not take.
	failed map[engine.ObjectKey]int
	// The minute in which tests are counted, and how many there were of each app.
	minute time.Time
	tests  map[string]int
}

// box is what waits for a channel.
type box struct {
	waiting []letter // guarded by outbox.mu
	// Likewise: the incidents of letters that were replaced, and that no digest has counted.
	over    map[string]bool
	busy    bool   // a goroutine sends; likewise
	version uint32 // of the channel that was sent to last; likewise
	// changed holds one: the channel was changed, or has taken a test.
	changed chan struct{}
	// When messages were sent in the last minute, repeats too; the goroutine's.
	sent []time.Time
}

// full returns until when the channel takes nothing more, if it has had so many in the last
// minute.
func (b *box) full(most int) (until time.Time, is bool) {
	now := time.Now()
	b.sent = slices.DeleteFunc(b.sent, func(at time.Time) bool { return now.Sub(at) >= time.Minute })
	if len(b.sent) < max(most, 1) {
		return until, false
	}
	return b.sent[len(b.sent)-max(most, 1)].Add(time.Minute), true
}

type letter struct {
	Message
	incident string
	n        int
	left     *atomic.Int32 // how many channels do not have it yet
}

func newOutbox(a *Alerter) *outbox {
	o := &outbox{a: a, boxes: map[engine.ObjectKey]*box{}, failed: map[engine.ObjectKey]int{}}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	o.life, o.end = context.WithCancel(o.ctx)
	return o
}

// letter is the nth message about an incident, which it tells as it stands.
func (i *Incident) letter(what string, n int, link string) letter {
	c := *i
	return letter{Message{Type: what, ID: fmt.Sprintf("al_%s_%d", i.ID, n), Incident: &c, Link: link}, i.ID, n, new(atomic.Int32)}
}

// put has a message about an incident of a rule of an app sent to channels. a.mu is held.
func (o *outbox) put(app string, l letter, channels []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	l.left.Store(int32(len(channels)))
	for _, name := range channels {
		k := engine.ObjectKey{Kind: ChannelKind, App: app, Name: name}
		b := o.boxes[k]
		if b == nil {
			b = &box{changed: make(chan struct{}, 1)}
			o.boxes[k] = b
		}
		if len(b.waiting) >= mostWaiting {
			if first := &b.waiting[0]; first.left.Add(-1) == 0 {
				o.a.noteSent(first.incident, first.n)
			}
			if b.over == nil {
				b.over = map[string]bool{}
			}
			b.over[b.waiting[0].incident] = true
			b.waiting = b.waiting[1:]
		}
		b.waiting = append(b.waiting, l)
		if !b.busy {
			b.busy = true
			o.works.Go(func() { o.send(k, b) })
		}
	}
}

// len is how many messages wait for their channels.
func (o *outbox) len() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, b := range o.boxes {
		n += len(b.waiting)
	}
	return n
}

// drop forgets the messages that wait, and ends the send under way: another node sends these messages.
func (o *outbox) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.end()
	o.life, o.end = context.WithCancel(o.ctx)
	clear(o.failed)
	for _, b := range o.boxes {
		b.waiting, b.over = nil, nil
	}
}

// stop ends what is being sent; the next start sends it again.
func (o *outbox) stop() {
	o.mu.Lock()
	o.over = true
	o.mu.Unlock()
	o.cancel()
	o.works.Wait()
}

// send sends what waits for a channel: one by one while the channel takes so many in a minute,
// and beyond that one digest of all when the minute since the first is over.
func (o *outbox) send(k engine.ObjectKey, b *box) {
	for o.ctx.Err() == nil {
		c, ok := o.channel(k)
		until, digest := b.full(c.PerMinute - 1)
		if digest = digest && ok; digest {
			process.Sleep(o.ctx, time.Until(until))
		}
		life, letters, over := o.take(k, b, digest)
		if letters == nil {
			return
		}
		if news := slices.DeleteFunc(slices.Clone(letters), o.a.isFormer); ok && len(news) > 0 { // or the channel was deleted
			m := news[0].Message
			if len(news) > 1 || len(over) > 0 {
				m = digestOf(news, over)
			}
			o.deliver(life, k, b, &m)
		}
		for _, l := range letters {
			if life.Err() == nil && l.left.Add(-1) == 0 {
				o.a.sent(l.incident, l.n)
			}
		}
	}
}

func (o *outbox) channel(k engine.ObjectKey) (c Channel, ok bool) {
	if found := o.a.cfg.Objects.Get(k); found != nil {
		return read[Channel](found)
	}
	return c, false
}

// take takes one message, or all and the incidents of those that were replaced; they are to be sent
// during a life. No message ends the goroutine of the box.
func (o *outbox) take(k engine.ObjectKey, b *box, all bool) (life context.Context, letters []letter, over map[string]bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(1, len(b.waiting))
	if all || len(b.over) > 0 {
		n, over, b.over = len(b.waiting), b.over, nil
	}
	if n == 0 {
		b.busy = false
		o.forgetGone(k, b)
		return nil, nil, nil
	}
	letters, b.waiting = b.waiting[:n:n], b.waiting[n:]
	return o.life, letters, over
}

// deliver sends a message until it is taken, refused for good, an hour has passed, or ctx ends. Each time
// it goes where the channel says then, and a change of the channel has it sent again at once.
func (o *outbox) deliver(ctx context.Context, k engine.ObjectKey, b *box, m *Message) {
	wait := firstRetry
	for until := time.Now().Add(giveUpAfter); ctx.Err() == nil; wait = min(max(2*wait, firstRetry), longestRetry) {
		c, ok := o.next(k, b)
		if !ok {
			return // it was deleted
		}
		process.Sleep(ctx, spread(c.Kind, time.Now()))
		if until, is := b.full(c.PerMinute); is {
			process.Sleep(ctx, time.Until(until))
		}
		if n := len(b.sent); n > 0 {
			process.Sleep(ctx, time.Until(b.sent[n-1].Add(apart[c.Kind])))
		}
		b.sent = append(b.sent, time.Now())
		d := &Delivery{App: k.App, Channel: c, Message: *m}
		r := o.a.cfg.Send(ctx, d)
		if ctx.Err() != nil && !r.Delivered {
			return
		}
		outcome := r.outcome()
		if outcome == "retrying" && time.Now().Add(max(wait, r.After)).After(until) {
			outcome = "given_up"
		}
		o.attempted(k, r.Delivered)
		o.a.delivered.note(k, m, &r, outcome)
		switch outcome {
		case "delivered":
			o.count(d, outcome)
			return
		case "refused":
			o.count(d, outcome)
			o.a.cfg.Log.Warn("an alert channel refuses a message", "app", d.App, "kind", c.Kind, "status", r.Status, "error", r.Error)
			return
		case "given_up":
			o.count(d, outcome)
			o.a.cfg.Log.Warn("a message to an alert channel is given up", "app", d.App, "kind", c.Kind, "status", r.Status, "error", r.Error)
			return
		}
		select {
		case <-ctx.Done():
		case <-b.changed:
			wait = 0
		case <-time.After(max(wait, r.After)):
		}
	}
}

// next is the channel for the next attempt.
func (o *outbox) next(k engine.ObjectKey, b *box) (c Channel, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-b.changed:
	default:
	}
	found := o.a.cfg.Objects.Get(k)
	if found == nil {
		return c, false
	}
	b.version = found.Version
	return read[Channel](found)
}

// changed has the message that waits for a channel sent again, if that was changed or took a
// test; zero: any may have been changed.
func (o *outbox) changed(k engine.ObjectKey, tested bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for of, b := range o.boxes {
		if of != k && k.Name != "" {
			continue
		}
		if now := o.a.cfg.Objects.Get(of); tested || now == nil || now.Version != b.version {
			select {
			case b.changed <- struct{}{}:
			default:
			}
		}
		o.forgetGone(of, b)
	}
}

// forgetGone forgets a box for which no goroutine sends and whose channel is gone: channels may be made and
// deleted for ever. o.mu is held.
func (o *outbox) forgetGone(k engine.ObjectKey, b *box) {
	if !b.busy && o.a.cfg.Objects.Get(k) == nil {
		delete(o.boxes, k)
	}
}

func (o *outbox) count(d *Delivery, result string) {
	o.a.cfg.Metrics.GetOrCreateCounter(fmt.Sprintf("xtimer_alerts_total{kind=%q,result=%q}", d.Channel.Kind, result)).Inc()
}

// Test sends a test message to a channel, once.
func (a *Alerter) Test(ctx context.Context, app, name string) (Result, error) {
	k := engine.ObjectKey{Kind: ChannelKind, App: app, Name: name}
	c, ok := a.box.channel(k)
	if !ok {
		return Result{}, engine.ErrNotFound
	}
	a.box.mu.Lock()
	now := time.Now()
	if now.Sub(a.box.minute) >= time.Minute {
		a.box.minute, a.box.tests = now, map[string]int{}
	}
	a.box.tests[app]++
	many, wait := a.box.tests[app] > mostTests, a.box.minute.Add(time.Minute).Sub(now)
	a.box.mu.Unlock()
	if many {
		return Result{}, &engine.Fault{
			Kind: engine.FaultTooMany, Code: "too_many_tests", Detail: fmt.Sprintf("channels of app %s were tested %d times in a minute: retry later", app, mostTests),
			Rate: &engine.RateLimit{Name: "tests", Most: mostTests, Window: time.Minute, Wait: wait},
		}
	}
	d := &Delivery{App: app, Channel: c, Message: Message{Type: "test", ID: fmt.Sprintf("al_test_%d", now.UnixMilli()), Link: a.cfg.Link}}
	r := a.cfg.Send(ctx, d)
	if r.Delivered { // one that is not is often of a channel that is being set up
		a.box.attempted(k, true)
		a.box.changed(k, true)
	}
	outcome := r.outcome()
	if outcome == "retrying" { // a test is sent once
		outcome = "given_up"
	}
	a.delivered.note(k, &d.Message, &r, outcome)
	return r, nil
}

package simulator

import (
	"context"
	"errors"
	"time"

	"xtimer/engine"
)

const (
	// answeredWithin is for how long a client waits for an answer.
	answeredWithin = 20 * time.Second
	// ownedWithin is for how long the nodes look for the owner of a timer.
	ownedWithin = 4 * time.Second
)

// ask makes a request, in its turn among those of its timer.
func (f *fleet) ask(s Step) {
	before := f.last[s.Name]
	over := make(chan struct{})
	f.last[s.Name] = over
	f.open.Add(1)
	f.asking.Go(func() {
		defer f.open.Add(-1)
		defer close(over)
		if before != nil {
			<-before
		}
		f.request(s)
	})
}

// request asks one node, and the others when the timer is not that one's.
func (f *fleet) request(s Step) {
	r := &request{Step: s, sent: f.since(), sentWall: f.now().UnixMilli(), state: refused, err: errDown}
	for try := uint64(0); try == 0 || f.since() < r.sent+ownedWithin; try++ {
		l := f.pick(s.Draw + try)
		if l == nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		r.state = unknown
		p, answered := f.askNode(l, s)
		if !answered {
			r.err = errors.New("the connection broke")
			break
		}
		r.view, r.key, r.deleted, r.same, r.err = p.view, p.key, p.deleted, p.same, p.err
		var fault *engine.Fault
		switch {
		case p.err == nil:
			r.state = done
		case errors.As(p.err, &fault) && (fault.Code == engine.ErrElsewhere.Code || fault.Code == "not_ready"):
			r.state = refused
			time.Sleep(20 * time.Millisecond)
			continue
		case errors.As(p.err, &fault) && fault.Kind != engine.FaultUnavailable:
			r.state = refused
		}
		break
	}
	f.answered(r)
}

// askNode asks a life. It may still do what was asked when nobody waits for the answer any
// more.
func (f *fleet) askNode(l *life, s Step) (p reply, answered bool) {
	got := make(chan reply, 1)
	ctx, cancel := context.WithCancel(context.Background()) // what a dead engine is asked never ends
	defer cancel()
	f.open.Add(1)
	f.asking.Go(func() {
		defer f.open.Add(-1)
		l.node.gate(l)
		p := f.perform(ctx, l, s)
		l.node.gate(l)
		got <- p
	})
	select {
	case p = <-got:
		return p, !l.isOver()
	case <-l.gone:
	case <-time.After(answeredWithin):
	}
	return reply{}, false
}

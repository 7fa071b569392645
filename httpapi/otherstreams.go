package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"xtimer/engine/inspect"
	"xtimer/httpapi/nodes"
)

// otherStreams are the event streams of the other nodes, which a stream of this node has
// among its own events. Each is opened again when it breaks, from its last event on, until
// its node lives no more; then a gap tells what the reader may have missed of it.
type otherStreams struct {
	s      *Server
	q      *nodes.Request
	events chan otherEvent
	// broken is how many streams are not open. While one is not, no event has an id: a reader
	// that comes back with it would miss what that stream has not told.
	broken atomic.Int64
	latest int64 // when a task of an event with an id ended, at most; of the writer
}

// otherEvent is an event of another node's stream.
type otherEvent struct {
	head, data []byte // lines, with their ends
	id         inspect.EventID
}

const (
	otherLook  = time.Second     // between two looks for nodes that have joined
	otherPause = time.Second / 2 // between two tries to open a stream
	otherWait  = 2 * time.Second // of a stream that begins, for those of the others
	joinedFor  = 2000            // ms: a node that is seen to have joined may have called for so long
	quietBeats = 3               // heartbeats that a stream may leave out
	mostLine   = 1 << 20         // of an event
)

// otherStreams returns what opens the streams of the other nodes until its context ends; nil:
// there are none.
func (s *Server) otherStreams(r *request, last *inspect.EventID) (open func(context.Context) *otherStreams) {
	if s.cfg.Cluster == nil || r.ofNode {
		return func(context.Context) *otherStreams { return nil }
	}
	o := &otherStreams{s: s, q: r.forNode(), events: make(chan otherEvent, 64)}
	return func(ctx context.Context) *otherStreams {
		o.open(ctx, last)
		return o
	}
}

// open opens the streams, and those of nodes that join later. It waits for the first ones.
func (o *otherStreams) open(ctx context.Context, last *inspect.EventID) {
	follows := map[uint64]bool{}
	look := func(last *inspect.EventID, opening func() (opened func())) {
		for _, n := range o.s.others() {
			if !follows[n.Life] {
				follows[n.Life] = true
				o.broken.Add(1)
				opened := opening()
				go o.follow(ctx, n, last, sync.OnceFunc(opened))
			}
		}
	}
	var first sync.WaitGroup
	look(last, func() func() {
		first.Add(1)
		return first.Done
	})
	go func() {
		for rest(ctx, otherLook) {
			look(&inspect.EventID{Ended: o.s.now() - joinedFor}, func() func() { return func() {} })
		}
	}()
	opened := make(chan struct{})
	go func() {
		first.Wait()
		close(opened)
	}()
	select {
	case <-opened:
	case <-ctx.Done():
	case <-time.After(otherWait):
	}
}

const lastEventID = "Last-Event-Id"

// rest waits; it reports false when ctx has ended.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// next is where the events come from; nil: from nowhere.
func (o *otherStreams) next() <-chan otherEvent {
	if o == nil {
		return nil
	}
	return o.events
}

// append appends an event.
func (o *otherStreams) append(b []byte, e *otherEvent) []byte {
	b = o.appendID(append(b, e.head...), e.id)
	return append(b, e.data...)
}

// appendID appends the id of an event, if a reader may come back with it.
func (o *otherStreams) appendID(b []byte, id inspect.EventID) []byte {
	if id == (inspect.EventID{}) {
		return b
	}
	if o != nil {
		if o.broken.Load() > 0 {
			return b
		}
		o.latest = max(o.latest, id.Ended)
	}
	return append(id.Append(append(b, "id: "...)), '\n')
}

// isBehind reports whether a place of this node's events is before an event that the reader
// has of another node.
func (o *otherStreams) isBehind(place inspect.EventID) bool {
	return o != nil && place.Ended < o.latest
}

// follow reads the stream of a node, and opens it again, until the node lives no more.
func (o *otherStreams) follow(ctx context.Context, n nodes.Node, last *inspect.EventID, opened func()) {
	defer opened()
	q := *o.q
	begun := o.s.now()
	for {
		q.Header = map[string][]string{}
		if last != nil {
			q.Header[lastEventID] = []string{string(last.Append(nil))}
		}
		err := o.read(ctx, n, &q, opened, &last)
		if ctx.Err() != nil {
			return
		}
		if last == nil { // the stream of the node never began: it goes on from here
			last = &inspect.EventID{Ended: begun}
		}
		o.s.log.Debug("the event stream of a node broke", "node", n.Name, "error", err)
		if !o.s.lives(n) || !rest(ctx, otherPause) {
			break
		}
	}
	g := inspect.Gap{To: o.s.now() + 1}
	if g.From = g.To - joinedFor; last != nil {
		g.From = min(g.From, last.Ended)
	}
	select {
	case o.events <- otherEvent{data: appendGap(nil, &g)}:
	case <-ctx.Done():
	}
	o.broken.Add(-1)
}

// read opens a stream once, and reads it until it breaks. last becomes its last id.
func (o *otherStreams) read(ctx context.Context, n nodes.Node, q *nodes.Request, opened func(), last **inspect.EventID) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.AfterFunc(quietBeats*o.s.cfg.Heartbeat, cancel)
	defer quiet.Stop()
	body, err := o.s.nodes.Open(ctx, n.Address, q)
	if err != nil {
		return err
	}
	defer body.Close()
	o.broken.Add(-1)
	defer o.broken.Add(1)
	opened()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, mostLine)
	var e otherEvent
	for lines.Scan() {
		quiet.Reset(quietBeats * o.s.cfg.Heartbeat)
		line := append(bytes.Clone(lines.Bytes()), '\n')
		name, value, _ := bytes.Cut(lines.Bytes(), []byte(": "))
		switch string(name) {
		case "event":
			e.head = line
		case "id":
			if id, ok := inspect.ParseEventID(string(value)); ok {
				e.id, *last = id, &id
			}
		case "data":
			e.data = line
		case "":
			if len(e.data) > 0 {
				e.data = append(e.data, '\n')
				select {
				case o.events <- e:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			e = otherEvent{}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return io.ErrUnexpectedEOF
}

// lives reports whether the life of a node is not over.
func (s *Server) lives(n nodes.Node) bool {
	for _, x := range s.cfg.Cluster.Nodes() {
		if x.Life == n.Life {
			return true
		}
	}
	return false
}

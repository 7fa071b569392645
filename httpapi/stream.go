package httpapi

import (
	"bufio"
	"context"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine/inspect"
	"xtimer/httpapi/conn"
	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

// streamTasks is GET /v1/tasks/stream: server-sent events, one for each task
// that ends.
//
//	retry: 2000          how long (ms) a browser waits before it connects again
//	event: task          a task, as GET /v1/tasks/{key} shows it
//	event: gap           {"from": …, "to": …}: tasks that ended between may be missing
//	id: …                the place of the last event; with each task, and with each heartbeat
//	:                    a heartbeat, so that both sides see that the other is there
//
// In a cluster the stream has the events of all nodes, see otherStreams.
//
// A stream ends when the reader goes, cannot take a write within 10 s, or the server
// shuts down. A reader that comes back with Last-Event-ID gets what ended meanwhile.
func (s *Server) streamTasks(r *request) (reply, error) {
	f, err := r.taskFilter(r.query)
	if err != nil {
		return reply{}, err
	}
	last, err := r.lastEvent()
	if err != nil {
		return reply{}, err
	}
	h := &r.http.Response.Header
	h.SetContentType("text/event-stream")
	h.Set(fasthttp.HeaderCacheControl, "no-store")
	h.Set("X-Accel-Buffering", "no") // nginx would hold the events back
	if r.http.IsHead() {
		return reply{sent: true}, nil
	}
	holder := r.holder()
	if !s.answers.HoldLasting(holder, streamBytes) {
		return reply{}, errAnswersFull
	}
	ctx, cancel := context.WithCancel(s.streams)
	tasks := s.e.Subscribers().Subscribe(ctx, f, last)
	others := s.otherStreams(r, last)
	conn.InPieces(r.http)
	r.http.SetBodyStreamWriter(func(w *bufio.Writer) {
		defer s.answers.ReleaseLasting(holder, streamBytes)
		defer cancel()
		s.stats.streams.Add(1)
		defer s.stats.streams.Add(-1)
		s.stream(ctx, w, tasks, others(ctx))
	})
	return reply{sent: true}, nil
}

// lastEvent is the ID of the last event that the reader has, nil for none. A browser
// that connects again sends the header; the parameter is for a reader that cannot send
// a header, and older than it.
func (r *request) lastEvent() (*inspect.EventID, error) {
	text := string(r.http.Request.Header.Peek("Last-Event-ID"))
	if text == "" {
		text = r.query["last_event_id"]
	}
	if text == "" {
		return nil, nil
	}
	id, ok := inspect.ParseEventID(text)
	if !ok {
		return nil, problem.BadField("last_event_id", "wrong_type", "is not the id of an event of this stream")
	}
	return &id, nil
}

// stream writes events until the reader or the server has gone.
func (s *Server) stream(ctx context.Context, w *bufio.Writer, tasks *inspect.Subscription, others *otherStreams) {
	beat := time.NewTicker(s.cfg.Heartbeat)
	defer beat.Stop()
	b := appendPosition([]byte(": xtimer\nretry: 2000\n"), tasks, others)
	for {
		if _, err := w.Write(b); err != nil {
			return // the reader has gone, though there is more to catch up on
		}
		b = b[:0]
		select {
		case e := <-others.next():
			b = others.append(b, &e)
		default:
		}
		e, more, err := tasks.Next(ctx)
		switch {
		case err != nil:
			if ctx.Err() == nil {
				s.cfg.Log.Warn("a stream of tasks ends, for history cannot be read", "error", err)
			}
			return // a reader that comes back goes on where it was
		case !more && len(b) > 0:
		case !more:
			if w.Flush() != nil {
				return
			}
			select {
			case <-tasks.Ready():
			case e := <-others.next():
				b = others.append(b, &e)
			case <-beat.C:
				b = appendPosition(append(b, ":\n"...), tasks, others)
			case <-ctx.Done():
				return
			}
		case e.Task == nil:
			s.stats.dropped.Add(int(e.Gap.Count))
			b = appendGap(b, &e.Gap)
		default:
			b = others.appendID(append(b, "event: task\n"...), e.ID)
			b = append(wire.AppendTask(append(b, "data: "...), e.Task), "\n\n"...)
		}
	}
}

// appendPosition gives the reader an ID without an event.
func appendPosition(b []byte, tasks *inspect.Subscription, others *otherStreams) []byte {
	if place := tasks.Position(); !others.isBehind(place) {
		b = others.appendID(b, place)
	}
	return append(b, '\n')
}

func appendGap(b []byte, g *inspect.Gap) []byte {
	b = wire.TimeMember(append(b, "event: gap\ndata: {"...), "from", g.From)
	b = wire.TimeMember(b, "to", g.To)
	if g.DueBefore > 0 {
		b = wire.TimeMember(b, "due_before", g.DueBefore)
	}
	if g.Count > 0 {
		b = strconv.AppendInt(wire.Member(b, "count"), g.Count, 10)
	}
	return append(b, "}\n\n"...)
}

package httpapi

import (
	"bufio"
	"context"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/httpapi/wire"
)

// streamTasks is GET /v1/tasks/stream: server-sent events, one for each task
// that ends.
//
//	event: task          a task, as GET /v1/tasks/{key} shows it; id is its key
//	event: dropped       {"count": n}: the reader was too slow for n tasks so far
//	: …                  a heartbeat, so that both sides see the other is there
//
// A stream ends when the reader goes, cannot take a write within 10 s, or the
// server shuts down; what was missed meanwhile is in GET /v1/tasks.
func (s *Server) streamTasks(r *request) (reply, error) {
	f, err := r.taskFilter(r.query)
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
	if !s.answers.hold(holder, streamBytes, false) {
		return reply{}, errAnswersFull
	}
	ctx, cancel := context.WithCancel(s.streams)
	tasks, dropped := s.e.Follow(ctx, f)
	inPieces(r.http)
	r.http.SetBodyStreamWriter(func(w *bufio.Writer) {
		defer s.answers.release(holder, streamBytes)
		defer cancel()
		s.stats.streams.Add(1)
		defer s.stats.streams.Add(-1)
		beat := time.NewTicker(s.cfg.Heartbeat)
		defer beat.Stop()
		w.WriteString(": xtimer\n\n")
		if w.Flush() != nil {
			return
		}
		var b []byte
		var told int64
		for {
			select {
			case t, ok := <-tasks:
				if !ok {
					return
				}
				b = append(b[:0], "event: task\nid: "...)
				b = t.Key.Append(b)
				b = append(b, "\ndata: "...)
				b = append(wire.AppendTask(b, t), "\n\n"...)
			case <-beat.C:
				b = append(b[:0], ":\n\n"...)
			case <-s.streams.Done():
				return
			}
			if n := dropped(); n > told {
				s.stats.dropped.Add(int(n - told))
				told = n
				b = append(b, "event: dropped\ndata: {\"count\":"...)
				b = append(strconv.AppendInt(b, n, 10), "}\n\n"...)
			}
			w.Write(b)
			if len(tasks) > 0 && w.Available() > 0 {
				continue // more is ready: one write for all
			}
			if w.Flush() != nil {
				return
			}
		}
	})
	return reply{sent: true}, nil
}

package httpapi

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/inspect"
	"xtimer/httpapi/wire"
)

// enableTimer is POST /v1/timers/{id}/enable.
func (s *Server) enableTimer(r *request) (reply, error) {
	catch := engine.CatchUpNone
	table := []wire.Field[engine.CatchUp]{{Name: "catch_up", Read: func(d *wire.Decoder, v *engine.CatchUp) {
		wire.Choice(d, v, parseCatchUp, "none, latest, all")
	}}}
	if err := readOptional(r, &catch, table); err != nil {
		return reply{}, err
	}
	id, err := s.mine(r)
	if err != nil {
		return reply{}, err
	}
	var v inspect.View
	err = s.matched(r, id, func(version uint32) (err error) {
		v, err = s.e.Enable(r.ctx, id, version, catch)
		return err
	})
	if err != nil {
		return reply{}, err
	}
	return timerReply(v), nil
}

func parseCatchUp(s string) (c engine.CatchUp, ok bool) {
	switch s {
	case "none":
		return engine.CatchUpNone, true
	case "latest":
		return engine.CatchUpLatest, true
	case "all":
		return engine.CatchUpAll, true
	}
	return 0, false
}

// disabling is the body of a disable.
type disabling struct {
	reason string
	until  int64
}

const maxReason = 256

var disablingFields = []wire.Field[disabling]{
	{Name: "reason", Read: func(d *wire.Decoder, v *disabling) { readReason(d, &v.reason) }},
	{Name: "until", Read: func(d *wire.Decoder, v *disabling) { d.Instant(&v.until) }},
}

func readReason(d *wire.Decoder, to *string) {
	if d.Text(to); len(*to) > maxReason || !wire.IsText(*to) {
		d.Invalid("bad_reason", "must be at most %d bytes of text without control characters", maxReason)
	}
}

// disableTimer is POST /v1/timers/{id}/disable.
func (s *Server) disableTimer(r *request) (reply, error) {
	var how disabling
	if err := readOptional(r, &how, disablingFields); err != nil {
		return reply{}, err
	}
	id, err := s.mine(r)
	if err != nil {
		return reply{}, err
	}
	var v inspect.View
	err = s.matched(r, id, func(version uint32) (err error) {
		v, err = s.e.Disable(r.ctx, id, version, how.reason, how.until)
		return err
	})
	if err != nil {
		return reply{}, err
	}
	return timerReply(v), nil
}

// readOptional reads a body by its table, if there is one.
func readOptional[T any](r *request, v *T, table []wire.Field[T]) error {
	b, err := r.optionalBody()
	if err != nil || b == nil {
		return err
	}
	return wire.Decode(b, func(d *wire.Decoder) { wire.Object(d, v, table) })
}

// runTimer is POST /v1/timers/{id}/run.
func (s *Server) runTimer(r *request) (reply, error) {
	id, err := s.mine(r)
	if err != nil {
		return reply{}, err
	}
	var force bool
	if err := readOptional(r, &force, []wire.Field[bool]{{Name: "force", Read: func(d *wire.Decoder, v *bool) { d.Flag(v) }}}); err != nil {
		return reply{}, err
	}
	run := s.e.RunNow
	if force {
		run = s.e.RunForced
	}
	var k engine.Key
	err = s.matched(r, id, func(version uint32) (err error) {
		k, err = run(r.ctx, id, version)
		return err
	})
	if err != nil {
		return reply{}, err
	}
	return keyReply(k), nil
}

// keyReply is 202 with the key of the task that will be called.
func keyReply(k engine.Key) reply {
	return reply{
		status: fasthttp.StatusAccepted, location: "/v1/tasks/" + k.String(),
		body: renderFunc(func(b []byte) []byte {
			b = append(b, `{"key":"`...)
			return append(k.Append(b), '"', '}')
		}),
	}
}

const defaultDues = 10

// upcoming is GET /v1/timers/{id}/upcoming.
func (s *Server) upcoming(r *request) (reply, error) {
	n, err := r.number("n", defaultDues, 1, maxLimit)
	if err != nil {
		return reply{}, err
	}
	id, err := s.mine(r)
	if err != nil {
		return reply{}, err
	}
	dues, err := s.e.Upcoming(r.ctx, id, n)
	if err != nil {
		return reply{}, err
	}
	return reply{body: renderFunc(func(b []byte) []byte {
		b = append(b, `{"timer_id":"`...)
		b = append(strconv.AppendUint(b, uint64(id), 10), '"')
		return append(duesMember(b, dues), '}')
	})}, nil
}

func duesMember(b []byte, dues []int64) []byte {
	b = append(wire.Member(b, "dues"), '[')
	for _, d := range dues {
		b = wire.AppendTime(wire.Comma(b), d)
	}
	return append(b, ']')
}

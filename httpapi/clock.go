package httpapi

import (
	"xtimer/engine/scheduler"
	"xtimer/httpapi/wire"
)

// resetClock is POST /v1/system/clock/reset: the clock as it is, is right, and a former
// one that was ahead of it was wrong. It answers as other bulk operations do.
func (s *Server) resetClock(r *request) (reply, error) {
	dryRun, err := r.boolean("dry_run")
	if err != nil {
		return reply{}, err
	}
	if err := readOptional(r, new(struct{}), nil); err != nil {
		return reply{}, err
	}
	if r.grant.app != AllApps {
		return reply{}, forbidden("the clock is of the whole service: it needs an admin token of all apps")
	}
	op, err := s.e.ResetClock(r.ctx, dryRun)
	if err != nil {
		return reply{}, err
	}
	return startedReply(op, dryRun), nil
}

// warningsMember says what is amiss although the server serves and fires, if anything is.
func warningsMember(b []byte, ws []scheduler.Warning) []byte {
	if len(ws) == 0 {
		return b
	}
	b = append(wire.Member(b, "warnings"), '[')
	for _, w := range ws {
		b = wire.TextMember(append(wire.Comma(b), '{'), "code", w.Code)
		b = append(wire.TextMember(b, "detail", w.Detail), '}')
	}
	return append(b, ']')
}

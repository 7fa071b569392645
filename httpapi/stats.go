package httpapi

import (
	"maps"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/httpapi/wire"
)

// getStats is GET /v1/stats.
func (s *Server) getStats(r *request) (reply, error) {
	if r.grant.app != AllApps {
		st := s.e.AppStats(r.grant.app)
		return reply{body: statsAnswer{&st, r.grant.app}}, nil
	}
	st, err := s.e.Stats(r.ctx)
	if err != nil {
		return reply{}, err
	}
	return reply{body: statsAnswer{&st, ""}}, nil
}

// statsAnswer renders the figures of the service, or those of one app: its tasks, and
// what belongs to no app.
type statsAnswer struct {
	s   *scheduler.Stats
	app string // "": the service
}

var latenessNames = [...]string{"lateness_ms_p50", "lateness_ms_p99", "lateness_ms_p99.9"}

func (a statsAnswer) render(b []byte) []byte {
	s := a.s
	b = append(b, '{')
	if a.app != "" {
		b = wire.TextMember(b, "app", a.app)
	} else {
		b = append(wire.Member(b, "timers"), '{')
		b = wire.IntMember(b, "enabled", s.Timers.Enabled)
		b = wire.IntMember(b, "disabled", s.Timers.Disabled)
		b = append(wire.IntMember(b, "finished", s.Timers.Finished), '}')
	}
	b = append(wire.Member(b, "tasks"), '{')
	b = wire.IntMember(b, "open", s.Open)
	b = wire.IntMember(b, "in_flight", s.InFlight)
	b = wire.IntMember(b, "overdue", s.Overdue)
	b = wire.AppendMillis(wire.Member(b, "oldest_overdue_ms"), s.OldestOverdue)
	b = append(wire.Member(b, "since_start"), '{')
	for i, n := range s.Ended {
		if st := engine.TaskStatus(i); st.Final() {
			b = wire.IntMember(b, st.String(), n)
		}
	}

	b = append(b, `}},"last_minute":{`...)
	b = wire.FloatMember(b, "fires_per_second", s.FiresPerSec)
	for i, name := range latenessNames {
		b = wire.FloatMember(b, name, s.Lateness[i])
	}

	b = append(b, '}')
	if a.app == "" {
		b = append(wire.Member(b, "due_by_minute"), '[')
		for _, n := range s.DueByMinute {
			b = wire.AppendInt(wire.Comma(b), n)
		}
		b = append(b, ']')
		b = wire.IntMember(b, "wheel", int64(s.Wheel))
		b = wire.IntMember(b, "warm", int64(s.Warm))
		b = wire.IntMember(b, "settle_backlog", s.SettleBacklog)
		b = wire.IntMember(b, "journal", s.Journal)
	}
	b = wire.FloatMember(b, "uptime_seconds", s.Uptime.Truncate(time.Millisecond).Seconds())
	if s.Watermark > 0 {
		b = wire.TimeMember(b, "watermark", s.Watermark)
	}
	return append(warningsMember(tiersMember(b, s.Tiers), s.Warnings), '}')
}

func tiersMember(b []byte, up map[string]bool) []byte {
	b = append(wire.Member(b, "tiers"), '{')
	for _, name := range slices.Sorted(maps.Keys(up)) {
		b = wire.BoolMember(b, name, up[name])
	}
	return append(b, '}')
}

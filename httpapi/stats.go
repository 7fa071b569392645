package httpapi

import (
	"maps"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/scheduler"
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
		b = textMember(b, "app", a.app)
	} else {
		b = append(member(b, "timers"), '{')
		b = intMember(b, "enabled", s.Timers.Enabled)
		b = intMember(b, "disabled", s.Timers.Disabled)
		b = append(intMember(b, "finished", s.Timers.Finished), '}')
	}
	b = append(member(b, "tasks"), '{')
	b = intMember(b, "open", s.Open)
	b = intMember(b, "in_flight", s.InFlight)
	b = intMember(b, "overdue", s.Overdue)
	b = appendMillis(member(b, "oldest_overdue_ms"), s.OldestOverdue)
	b = append(member(b, "since_start"), '{')
	for i, n := range s.Ended {
		if st := engine.TaskStatus(i); st.Final() {
			b = intMember(b, st.String(), n)
		}
	}

	b = append(b, `}},"last_minute":{`...)
	b = floatMember(b, "fires_per_second", s.FiresPerSec)
	for i, name := range latenessNames {
		b = floatMember(b, name, s.Lateness[i])
	}

	b = append(b, '}')
	if a.app == "" {
		b = append(member(b, "due_by_minute"), '[')
		for _, n := range s.DueByMinute {
			b = appendInt(comma(b), n)
		}
		b = append(b, ']')
		b = intMember(b, "wheel", int64(s.Wheel))
		b = intMember(b, "warm", int64(s.Warm))
		b = intMember(b, "settle_backlog", s.SettleBacklog)
		b = intMember(b, "journal", s.Journal)
	}
	b = floatMember(b, "uptime_seconds", s.Uptime.Truncate(time.Millisecond).Seconds())
	if s.Watermark > 0 {
		b = timeMember(b, "watermark", s.Watermark)
	}
	return append(warningsMember(tiersMember(b, s.Tiers), s.Warnings), '}')
}

func tiersMember(b []byte, up map[string]bool) []byte {
	b = append(member(b, "tiers"), '{')
	for _, name := range slices.Sorted(maps.Keys(up)) {
		b = boolMember(b, name, up[name])
	}
	return append(b, '}')
}

package httpapi

import (
	"strings"

	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/httpapi/wire"
)

// listTimers is GET /v1/timers.
func (s *Server) listTimers(r *request) (reply, error) {
	f, err := r.timerFilter(r.query)
	if err != nil {
		return reply{}, err
	}
	after, limit, err := s.page(r)
	if err != nil {
		return reply{}, err
	}
	withLast, err := r.boolean("last_task")
	if err != nil {
		return reply{}, err
	}
	b := buffers.Get().(*[]byte)
	for {
		vs, next, err := s.e.Timers(r.ctx, f, after, limit)
		if err == nil && withLast {
			err = s.e.LastTasks(r.ctx, vs)
		}
		if err != nil {
			return reply{}, err
		}
		*b = append((*b)[:0], `{"timers":[`...)
		fit := appendViews(b, vs)
		if fit == len(vs) {
			*b = append(s.cursorMember(append(*b, ']'), r, next), '}')
			return reply{made: b}, nil
		}
		limit = fit // read again, for the cursor of a page that ends there
	}
}

// appendViews appends timers until the page is full, and says how many.
func appendViews(b *[]byte, vs []scheduler.View) (fit int) {
	for i := range vs {
		if *b = wire.AppendView(wire.Comma(*b), &vs[i]); len(*b) > pageBytes {
			return i + 1
		}
	}
	return len(vs)
}

// timerFilter reads the filters of a list of timers from q, which has only
// known names.
func (r *request) timerFilter(q map[string]string) (f engine.TimerFilter, err error) {
	if f.App, err = r.limitApp(q["app"]); err != nil {
		return f, err
	}
	f.NamePrefix = q["name_prefix"]
	if w, ok := q["status"]; ok {
		if f.Status, f.HasStatus = engine.ParseStatus(w); !f.HasStatus {
			return f, badField("status", "unknown_value", wire.Quote(w)+" is not one of enabled, disabled, finished")
		}
	}
	if l, ok := q["label"]; ok {
		f.Labels, err = parseSelector(l)
	}
	return f, err
}

// maxTerms bounds a label selector.
const maxTerms = 32

// parseSelector reads a label selector: terms key=value or key!=value, all of
// which have to hold, separated by commas. A timer without the label has it
// with the value "".
func parseSelector(s string) ([]engine.LabelMatch, error) {
	var terms []engine.LabelMatch
	for term := range strings.SplitSeq(s, ",") {
		term = strings.TrimSpace(term)
		k, v, ok := strings.Cut(term, "=")
		m := engine.LabelMatch{Value: strings.TrimSpace(v)}
		m.Key, m.Not = strings.CutSuffix(k, "!")
		m.Key = strings.TrimSpace(m.Key)
		if !ok || m.Key == "" || strings.ContainsAny(m.Key, "!=") || strings.ContainsAny(m.Value, "!=") && strings.HasPrefix(m.Value, "=") {
			return nil, badField("label", "bad_selector", wire.Quote(term)+" is not a term like team=a or env!=prod")
		}
		if terms = append(terms, m); len(terms) > maxTerms {
			return nil, badField("label", "bad_selector", "has more than 32 terms")
		}
	}
	return terms, nil
}

// taskFilter reads the filters of a list of tasks.
func (r *request) taskFilter(q map[string]string) (f engine.TaskFilter, err error) {
	if f.App, err = r.limitApp(q["app"]); err != nil {
		return f, err
	}
	if s, ok := q["timer_id"]; ok {
		if f.Timer, err = engine.ParseTimerID(s); err != nil {
			return f, badField("timer_id", "wrong_type", "is not a timer's id")
		}
	}
	if s, ok := q["status"]; ok {
		for w := range strings.SplitSeq(s, ",") {
			st, ok := engine.ParseTaskStatus(w)
			if !ok {
				return f, badField("status", "unknown_value", wire.Quote(w)+" is not one of "+taskStatuses)
			}
			f.Statuses = append(f.Statuses, st)
		}
	}
	if s, ok := q["origin"]; ok {
		if f.Origin, f.HasOrigin = engine.ParseOrigin(s); !f.HasOrigin {
			return f, badField("origin", "unknown_value", wire.Quote(s)+" is not one of schedule, manual, redrive, catch_up")
		}
	}
	for name, to := range map[string]*int64{"from": &f.From, "to": &f.To} {
		if s, ok := q[name]; ok {
			if *to, err = parseInstant(name, s); err != nil {
				return f, err
			}
		}
	}
	if f.To != 0 && f.To <= f.From {
		return f, badField("to", "out_of_range", "must be later than from")
	}
	return f, nil
}

const taskStatuses = "waiting, running, retrying, succeeded, failed, dead, skipped, missed, cancelled, unknown"

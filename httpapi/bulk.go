package httpapi

import (
	"maps"
	"strconv"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/change"
	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

// The filters of a bulk operation stand in the query or in a JSON body, as
// strings, or in both; none may stand in both. One without any filter means
// everything, and is done only if it says so: {"all": true}.
type bulkRequest struct {
	filters map[string]string
	all     bool
	dryRun  bool
	how     disabling
}

func (s *Server) enableTimers(r *request) (reply, error) {
	return s.bulkTimers(r, change.EnableAll)
}

func (s *Server) disableTimers(r *request) (reply, error) {
	return s.bulkTimers(r, change.DisableAll)
}

func (s *Server) deleteTimers(r *request) (reply, error) {
	return s.bulkTimers(r, change.DeleteAll)
}

func (s *Server) bulkTimers(r *request, action change.BulkAction) (reply, error) {
	b, err := r.bulk(timerFilters, action == change.DisableAll)
	if err != nil {
		return reply{}, err
	}
	f, err := r.timerFilter(b.filters)
	if err != nil {
		return reply{}, err
	}
	return s.startBulk(r, change.Bulk{
		Action: action, Timers: f, DryRun: b.dryRun, Reason: b.how.reason, Until: b.how.until,
	})
}

// retryTasks is POST /v1/tasks/retry; without a status it takes what failed or
// is dead. What may have been sent (unknown) must be asked for.
func (s *Server) retryTasks(r *request) (reply, error) {
	b, err := r.bulk(taskFilters, false)
	if err != nil {
		return reply{}, err
	}
	f, err := r.taskFilter(b.filters)
	if err != nil {
		return reply{}, err
	}
	if err := retryable(&f); err != nil {
		return reply{}, err
	}
	f.HasDismissed = true // what was dismissed is asked for by dismissed=true
	if mine, err := s.owns(r, f.Timer); err != nil || !mine {
		return operationReply(change.Operation{Action: change.RedriveAll, App: f.App, Ended: true}, b.dryRun), err
	}
	return s.startBulk(r, change.Bulk{Action: change.RedriveAll, Tasks: f, DryRun: b.dryRun})
}

// bulk reads the request of a bulk operation.
func (r *request) bulk(names []string, disable bool) (b bulkRequest, err error) {
	if b.all, err = r.boolean("all"); err != nil {
		return b, err
	}
	if b.dryRun, err = r.boolean("dry_run"); err != nil {
		return b, err
	}
	b.filters = maps.Clone(r.query)
	if b.filters == nil {
		b.filters = make(map[string]string)
	}
	delete(b.filters, "all")
	delete(b.filters, "dry_run")

	once := func(d *wire.Decoder, given bool) {
		if given {
			d.Note(true, "duplicate_field", "is given in both the query and the body")
		}
	}
	flag := func(name string, of func(*bulkRequest) *bool) wire.Field[bulkRequest] {
		_, given := r.query[name]
		return wire.Field[bulkRequest]{Name: name, Read: func(d *wire.Decoder, v *bulkRequest) {
			d.Flag(of(v))
			once(d, given)
		}}
	}
	table := []wire.Field[bulkRequest]{
		flag("all", func(v *bulkRequest) *bool { return &v.all }),
		flag("dry_run", func(v *bulkRequest) *bool { return &v.dryRun }),
	}
	for _, name := range names {
		table = append(table, wire.Field[bulkRequest]{Name: name, Read: func(d *wire.Decoder, v *bulkRequest) {
			var s string
			switch name {
			case "from", "to":
				var at int64
				if d.Instant(&at); at != 0 {
					s = strconv.FormatInt(at, 10)
				}
			case "dismissed":
				var is bool
				d.Flag(&is)
				s = strconv.FormatBool(is)
			default:
				d.Text(&s)
			}
			_, given := v.filters[name]
			once(d, given)
			v.filters[name] = s
		}})
	}
	if disable {
		table = append(
			table,
			wire.Field[bulkRequest]{Name: "reason", Read: func(d *wire.Decoder, v *bulkRequest) { readReason(d, &v.how.reason) }},
			wire.Field[bulkRequest]{Name: "until", Read: func(d *wire.Decoder, v *bulkRequest) { d.Instant(&v.how.until) }},
		)
	}
	if err := readOptional(r, &b, table); err != nil {
		return b, err
	}
	// Of all apps, and of any name: that is no filter. ?app=$APP may be a slip.
	maps.DeleteFunc(b.filters, func(name, value string) bool {
		return value == "" && (name == "app" || name == "name_prefix" || name == "q" || name == "code")
	})
	filters := len(b.filters)
	if b.filters["dismissed"] == "false" { // as without it
		filters--
	}
	if filters == 0 && !b.all && !b.dryRun {
		return b, problem.BadField("all", "no_filter", "without a filter the request selects everything; set all=true to confirm")
	}
	return b, nil
}

// startBulk answers the count: 200 when it is done, 202 when it goes on.
func (s *Server) startBulk(r *request, b change.Bulk) (reply, error) {
	op, err := s.e.StartBulk(r.ctx, b)
	if err != nil {
		return reply{}, err
	}
	return startedReply(op, b.DryRun), nil
}

// startedReply answers an operation that was just started.
func startedReply(op change.Operation, dryRun bool) reply {
	out := operationReply(op, dryRun)
	if !op.Ended && !dryRun {
		out.status = fasthttp.StatusAccepted
		out.location = "/v1/operations/" + op.ID
	}
	return out
}

// getOperation is GET /v1/operations/{id}.
func (s *Server) getOperation(r *request) (reply, error) {
	op, ok := s.e.Operation(r.vars[0])
	if !ok || !r.MayUse(op.App) {
		return reply{}, engine.ErrNotFound
	}
	return operationReply(op, false), nil
}

var actionNames = [...]string{
	change.EnableAll: "enable", change.DisableAll: "disable", change.DeleteAll: "delete", change.RedriveAll: "retry",
	change.ResetClock: "clock_reset",
}

func operationReply(op change.Operation, dryRun bool) reply {
	return reply{body: renderFunc(func(b []byte) []byte {
		b = append(b, '{')
		if op.ID != "" {
			b = wire.TextMember(b, "id", op.ID)
		}
		b = wire.TextMember(b, "action", actionNames[op.Action])
		if op.App != "" {
			b = wire.TextMember(b, "app", op.App)
		}
		b = wire.BoolMember(b, "dry_run", dryRun)
		b = wire.IntMember(b, "count", op.Total)
		b = wire.IntMember(b, "done", op.Done)
		b = wire.IntMember(b, "failed", op.Failed)
		b = wire.BoolMember(b, "ended", op.Ended || dryRun)
		if op.Error != "" {
			b = wire.TextMember(b, "error", op.Error)
		}
		if !op.Started.IsZero() {
			b = wire.TimeMember(b, "started", op.Started.UnixMilli())
		}
		return append(b, '}')
	})}
}

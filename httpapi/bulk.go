package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/change"
	"xtimer/httpapi/nodes"
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
		return operationReply(change.Operation{Action: change.RedriveAll, App: f.App, Ended: true}, b.dryRun, true), err
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
	return s.start(r, b.DryRun, func(part change.Part) (change.Operation, error) {
		b.Part = part
		return s.e.StartBulk(r.ctx, b)
	})
}

// start starts a bulk operation: of a process that is alone, of the part that another node
// asks for, or of all nodes.
func (s *Server) start(r *request, dryRun bool, do func(change.Part) (change.Operation, error)) (reply, error) {
	var op change.Operation
	var whole bool
	var err error
	switch {
	case s.cfg.Cluster == nil:
		op, err = do(change.Part{})
		whole = true
	case r.ofNode:
		var part change.Part
		if part, err = readPart(r.http.Request.Header.Peek(nodes.PartHeader)); err == nil {
			op, err = do(part)
			r.http.Response.Header.Set(nodes.PartHeader, renderPart(change.Part{ID: op.ID, Done: op.Shards}))
		}
		whole = true
	default:
		op, whole, err = s.startEverywhere(r, dryRun, do)
	}
	if err != nil {
		return reply{}, err
	}
	out := operationReply(op, dryRun, whole)
	if !op.Ended && !dryRun {
		out.status = fasthttp.StatusAccepted
		out.location = "/v1/operations/" + op.ID
	}
	return out, nil
}

// getOperation is GET /v1/operations/{id}. Of several nodes each tells in which shards it did its part. An operation
// that was not done in all of them is not whole: a node that took part is away, or has started again since.
func (s *Server) getOperation(r *request) (reply, error) {
	op, ok := s.e.Operation(r.vars[0])
	ok = ok && r.MayUse(op.App)
	whole := true
	switch {
	case s.cfg.Cluster == nil:
	case r.ofNode:
		r.http.Response.Header.Set(nodes.PartHeader, renderPart(change.Part{ID: op.ID, Done: op.Shards}))
	default:
		for _, a := range s.askEach(r, s.others(), nil) {
			if part, err := readOperation(a); err == nil {
				op.Add(&part)
				ok = true
			}
		}
		op.ID, whole = r.vars[0], op.Shards == engine.AllShards
	}
	if !ok {
		return reply{}, engine.ErrNotFound
	}
	return operationReply(op, false, whole), nil
}

// startEverywhere starts an operation at each node. A shard that moves meanwhile is asked
// for again, until ownerWait is over; whole tells that each shard was selected from. An operation that may go on at a
// node whose answer is missing has not ended.
func (s *Server) startEverywhere(r *request, dryRun bool, do func(change.Part) (change.Operation, error)) (sum change.Operation, whole bool, err error) {
	part := change.Part{ID: s.e.OperationID()}
	began, inDoubt, empty := false, false, engine.Set{}
	take := func(op change.Operation, failed error) {
		if failed != nil {
			err = cmp.Or(err, failed)
			return
		}
		sum.Add(&op)
		part.Done, began = part.Done.Union(op.Shards), true
		if op.ID == "" {
			empty = empty.Union(op.Shards)
		}
	}
	for until := time.Now().Add(ownerWait); ; {
		others, own, failed := s.startOnce(r, part, do)
		for _, a := range others {
			inDoubt = inDoubt || a.isInDoubt()
			take(readOperation(a))
		}
		take(own, failed)
		if whole = part.Done == engine.AllShards; whole || !began && isRefusal(err) || time.Now().After(until) {
			break
		}
		select {
		case <-time.After(longestPause):
		case <-r.ctx.Done():
			return sum, false, r.ctx.Err()
		}
	}
	if !began {
		return sum, false, err
	}
	if inDoubt = inDoubt && !whole && !dryRun; inDoubt {
		sum.Ended = false
	}
	if sum.ID != "" || inDoubt {
		sum.ID = part.ID
		s.e.NoteEmpty(sum, empty)
	}
	if !whole && err != nil {
		sum.Error = cmp.Or(sum.Error, problem.Of(err).Detail)
	}
	return sum, whole, nil
}

// isRefusal reports whether an error is about the request itself.
func isRefusal(err error) bool {
	return err != nil && problem.Of(err).Status < fasthttp.StatusInternalServerError
}

// startOnce starts the parts of the other nodes and of this one. To select takes all
// nodes about as long, and 10,000 items take 8 to 12 s (MariaDB, two busy cores): another node has answerWait more than
// this one needs. A node that does not answer by then goes on with its part.
func (s *Server) startOnce(r *request, part change.Part, do func(change.Part) (change.Operation, error)) (others []nodeAnswer, own change.Operation, err error) {
	ctx, giveUp := context.WithCancel(r.ctx)
	defer giveUp()
	done := make(chan struct{})
	go func() {
		defer close(done)
		own, err = do(part)
		time.AfterFunc(answerWait, giveUp)
	}()
	others = s.askAll(ctx, r, s.others(), func(q *nodes.Request) { q.Header[nodes.PartHeader] = []string{renderPart(part)} })
	<-done
	return others, own, err
}

// doItem is POST /v1/internal/items: another node has this one do an item of a bulk operation.
func (s *Server) doItem(r *request) (reply, error) {
	return r.answerMessage(func(b []byte) ([]byte, error) { return s.e.DoItem(r.ctx, b) })
}

// readOperation reads what another node answers of its part.
func readOperation(a nodeAnswer) (op change.Operation, err error) {
	if a.err != nil {
		return op, errUnreachable(a.node)
	}
	if a.Status >= fasthttp.StatusMultipleChoices {
		return op, readProblem(a)
	}
	var is struct {
		ID, App, Error      string
		Count, Done, Failed int64
		Ended               bool
		Started             time.Time
		Action              string
	}
	if err := json.Unmarshal(a.Body, &is); err != nil {
		return op, fmt.Errorf("the answer of node %s: %w", a.node.Name, err)
	}
	part, err := readPart([]byte(a.Header.Get(nodes.PartHeader)))
	return change.Operation{
		ID: is.ID, App: is.App, Error: is.Error, Total: is.Count, Done: is.Done, Failed: is.Failed, Ended: is.Ended, Started: is.Started,
		Action: change.BulkAction(max(0, slices.Index(actionNames[:], is.Action))), Shards: part.Done,
	}, err
}

// renderPart renders a part for another node: the shards in hexadecimal, and the id.
func renderPart(p change.Part) string {
	s := ""
	for _, word := range p.Done {
		s += fmt.Sprintf("%016x", word)
	}
	return s + ";" + p.ID
}

// readPart reads what renderPart rendered; of nothing it is the zero part.
func readPart(b []byte) (p change.Part, err error) {
	if len(b) == 0 {
		return p, nil
	}
	hex, id, _ := strings.Cut(string(b), ";")
	p.ID = id
	for i := range p.Done {
		if len(hex) < 16 {
			return p, errBadPart
		}
		if p.Done[i], err = strconv.ParseUint(hex[:16], 16, 64); err != nil {
			return p, errBadPart
		}
		hex = hex[16:]
	}
	return p, nil
}

var errBadPart = problem.Malformed("bad_part", "the part of the operation that a node asks for cannot be read")

var actionNames = [...]string{
	change.EnableAll: "enable", change.DisableAll: "disable", change.DeleteAll: "delete", change.RedriveAll: "retry",
	change.ResetClock: "clock_reset",
}

// operationReply renders an operation. One that is not whole has not reached all timers.
func operationReply(op change.Operation, dryRun, whole bool) reply {
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
		if !whole {
			b = wire.BoolMember(b, "partial", true)
		}
		return append(b, '}')
	})}
}

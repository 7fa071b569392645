package httpapi

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine"
	"xtimer/engine/inspect"
	"xtimer/httpapi/access"
	"xtimer/httpapi/nodes"
	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

// listTimers is GET /v1/timers.
func (s *Server) listTimers(r *request) (reply, error) {
	f, badFilter := r.timerFilter(r.query)
	after, limit, badPage := s.page(r)
	withLast, badLast := r.boolean("last_task")
	withTotal, badTotal := r.boolean("total")
	if err := problem.Together(badFilter, badPage, badLast, badTotal); err != nil {
		return reply{}, err
	}
	b := buffers.Get().(*[]byte)
	for {
		whole := true
		owners := s.owners(&whole)
		vs, next, err := s.timers(r.ctx, f, after, limit, withLast, owners)
		if err != nil {
			return reply{}, err
		}
		*b = append((*b)[:0], `{"timers":[`...)
		fit := appendViews(b, vs)
		if fit == len(vs) {
			*b = s.cursorMember(append(*b, ']'), r, next)
			if withTotal {
				n, exact, err := s.e.CountTimers(r.ctx, f, owners)
				if err != nil {
					return reply{}, err
				}
				*b = wire.IntMember(append(wire.Member(*b, "total"), '{'), "count", n)
				*b = append(wire.BoolMember(*b, "exact", exact), '}')
			}
			if !whole {
				*b = wire.BoolMember(*b, "partial", true)
			}
			*b = append(*b, '}')
			return reply{made: b}, nil
		}
		limit = fit // read again, for the cursor of a page that ends there
	}
}

// searchTime is how long a request goes on to look for the entries of a page that no index
// helps with. Then the page ends, and its cursor goes on.
const searchTime = 100 * time.Millisecond

// timers is a page of timers; a search fills it for as long as searchTime.
func (s *Server) timers(ctx context.Context, f engine.TimerFilter, after string, limit int, last bool, owners inspect.Owners) (vs []inspect.View, next string, err error) {
	vs, next, err = s.e.Timers(ctx, f, after, limit, last, owners)
	for begun := time.Now(); err == nil && f.Searches() && len(vs) < limit && next != "" && time.Since(begun) < searchTime; {
		var more []inspect.View
		more, next, err = s.e.Timers(ctx, f, next, limit-len(vs), last, owners)
		vs = append(vs, more...)
	}
	return vs, next, err
}

// owners asks the other nodes how their timers stand; whole becomes false if one does not say.
func (s *Server) owners(whole *bool) inspect.Owners {
	if s.cfg.Cluster == nil {
		return nil
	}
	return func(ctx context.Context, ids []engine.TimerID, last bool) (told []inspect.Told) {
		ctx, cancel := context.WithTimeout(ctx, ownerWait)
		defer cancel()
		all, err := nodes.AskTimers(ids, last, s.owner, func(n nodes.Node, q *nodes.Request) (nodes.Answer, error) { return s.ask(ctx, n, q) })
		if err != nil {
			*whole = false
			s.log.Warn("a list of timers lacks what is in the memory of other nodes", "error", err)
		}
		for _, x := range all {
			told = append(told, inspect.Told(x))
		}
		return told
	}
}

// tellTimers is POST /v1/internal/timers: another node asks how timers of this one stand.
func (s *Server) tellTimers(r *request) (reply, error) {
	b, err := r.message()
	if err != nil {
		return reply{}, err
	}
	q, err := nodes.ReadTimersAsk(b)
	if err != nil {
		return reply{}, problem.Malformed("bad_message", err.Error())
	}
	all, elsewhere, err := s.e.Tell(r.ctx, q.IDs, q.Last)
	if err != nil {
		return reply{}, err
	}
	answer := nodes.TimersTold{Elsewhere: elsewhere}
	for _, x := range all {
		answer.Timers = append(answer.Timers, nodes.Told(x))
	}
	b, err = json.Marshal(answer)
	return reply{made: &b}, err
}

// appendViews appends timers until the page is full, and says how many.
func appendViews(b *[]byte, vs []inspect.View) (fit int) {
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
	var errs [4]error
	f.App, errs[0] = r.limitApp(q["app"])
	f.NamePrefix = q["name_prefix"]
	f.Search, errs[1] = searchText(q)
	if w, ok := q["status"]; ok {
		if f.Status, f.HasStatus = engine.ParseStatus(w); !f.HasStatus {
			errs[2] = problem.BadField("status", "unknown_value", wire.Quote(w)+" is not one of enabled, disabled, finished")
		}
	}
	if l, ok := q["label"]; ok {
		f.Labels, errs[3] = parseSelector(l)
	}
	return f, problem.Together(errs[:]...)
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
			return nil, problem.BadField("label", "bad_selector", wire.Quote(term)+" is not a term like team=a or env!=prod")
		}
		if terms = append(terms, m); len(terms) > maxTerms {
			return nil, problem.BadField("label", "bad_selector", "has more than 32 terms")
		}
	}
	return terms, nil
}

// taskFilter reads the filters of a list of tasks.
func (r *request) taskFilter(q map[string]string) (f engine.TaskFilter, err error) {
	var errs [8]error
	f.App, errs[0] = r.limitApp(q["app"])
	if s, ok := q["timer_id"]; ok {
		if f.Timer, err = engine.ParseTimerID(s); err != nil {
			errs[1] = problem.BadField("timer_id", "wrong_type", "is not a timer's id")
		}
	}
	f.Statuses, errs[2] = taskStatusesOf(q)
	if s, ok := q["origin"]; ok {
		if f.Origin, f.HasOrigin = engine.ParseOrigin(s); !f.HasOrigin {
			errs[3] = problem.BadField("origin", "unknown_value", wire.Quote(s)+" is not one of schedule, manual, redrive, catch_up")
		}
	}
	errs[4] = codeFilter(q["code"], &f)
	f.Search, errs[5] = searchText(q)
	switch s, ok := q["dismissed"]; {
	case ok && s != "true" && s != "false":
		errs[6] = problem.BadField("dismissed", "wrong_type", "must be true or false")
	case ok:
		f.HasDismissed, f.Dismissed = true, s == "true"
	}
	errs[7] = spanFilter(q, &f)
	return f, problem.Together(errs[:]...)
}

// spanFilter reads from and to.
func spanFilter(q map[string]string, f *engine.TaskFilter) error {
	var errs [2]error
	if s, ok := q["from"]; ok {
		f.From, errs[0] = parseInstant("from", s)
	}
	if s, ok := q["to"]; ok {
		f.To, errs[1] = parseInstant("to", s)
	}
	if err := problem.Together(errs[:]...); err != nil {
		return err
	}
	if f.To != 0 && f.To <= f.From {
		return problem.BadField("to", "out_of_range", "must be later than from")
	}
	return nil
}

func taskStatusesOf(q map[string]string) (sts []engine.TaskStatus, err error) {
	s, ok := q["status"]
	if !ok {
		return nil, nil
	}
	for w := range strings.SplitSeq(s, ",") {
		st, ok := engine.ParseTaskStatus(w)
		if !ok {
			return nil, problem.BadField("status", "unknown_value", wire.Quote(w)+" is not one of "+taskStatuses)
		}
		sts = append(sts, st)
	}
	return sts, nil
}

const taskStatuses = "waiting, running, retrying, succeeded, failed, dead, skipped, missed, cancelled, unknown"

// maxSearch bounds what is searched for, in bytes.
const maxSearch = 100

func searchText(q map[string]string) (string, error) {
	if len(q["q"]) > maxSearch {
		return "", problem.BadField("q", "out_of_range", "must be at most 100 bytes")
	}
	return q["q"], nil
}

// codeFilter reads a status (503), a class of them (5xx) or an error class (timeout).
func codeFilter(s string, f *engine.TaskFilter) error {
	if s == "" {
		return nil
	}
	if class, ok := strings.CutSuffix(s, "xx"); ok && len(class) == 1 && class[0] >= '1' && class[0] <= '5' {
		f.CodeFrom = int(class[0]-'0') * 100
		f.CodeTo = f.CodeFrom + 99
		return nil
	}
	if n, err := strconv.Atoi(s); err == nil && len(s) == 3 && n >= 100 {
		f.CodeFrom, f.CodeTo = n, n
		return nil
	}
	if !slices.Contains(engine.ErrorClasses, s) {
		return problem.BadField("code", "unknown_value", wire.Quote(s)+" is not a status like 503, a class like 5xx, or one of "+strings.Join(engine.ErrorClasses, ", "))
	}
	f.Class = s
	return nil
}

// listTurns are those of lists. Reading and writing a page takes milliseconds of
// a core and megabytes: one app may have half the cores at it.
func listTurns() *access.Turns {
	cores := runtime.GOMAXPROCS(0)
	return access.NewTurns(max(1, cores/2), cores, time.Second, &problem.Problem{
		Status: fasthttp.StatusServiceUnavailable, Code: "too_many_lists", Retry: 1,
		Detail: "other requests are reading lists, and no turn became free within a second: retry later, or use fewer connections",
	})
}

// reading waits for a turn to make a page, and holds the memory that takes: one for which
// there is none is refused before it is read.
func (s *Server) reading(r *request) (leave func(), err error) {
	app := r.Grant.App
	end, err := s.listing.Take(r.ctx, app)
	if err != nil {
		return nil, err
	}
	if !s.answers.Hold(app, pageWork, false) {
		end()
		return nil, errAnswersFull
	}
	return func() {
		s.answers.Release(app, pageWork)
		end()
	}, nil
}

// CursorKeySize is the length of ServerConfig.CursorKey, in bytes.
const CursorKeySize = 32

// cursors seals the place where a list goes on. Without that a page would tell where
// the timers and tasks of other apps lie between the token's own, and a token could
// name any place.
type cursors struct{ aead cipher.AEAD }

// newCursors takes a key of CursorKeySize; without one it makes its own.
func newCursors(key []byte) (c cursors, err error) {
	if key == nil {
		key = make([]byte, CursorKeySize)
		rand.Read(key)
	}
	if len(key) != CursorKeySize {
		return c, fmt.Errorf("the key of cursors has %d bytes, not %d", len(key), CursorKeySize)
	}
	block, err := aes.NewCipher(key)
	if err == nil {
		c.aead, err = cipher.NewGCMWithRandomNonce(block)
	}
	return c, err
}

// sealed are the cursors of the server: of a cluster, each node takes those of the others.
func (s *Server) sealed() *cursors {
	if s.cfg.Cluster == nil {
		return &s.cursors
	}
	if all := s.clusterCursors.Load(); all != nil {
		return all
	}
	secret := s.cfg.Cluster.Secret()
	if secret == nil {
		return &s.cursors
	}
	h := hmac.New(sha256.New, secret)
	h.Write([]byte("xtimer cursors of lists, 1"))
	all, err := newCursors(h.Sum(nil))
	if err != nil {
		return &s.cursors
	}
	s.clusterCursors.Store(&all)
	return &all
}

// scope is what a cursor is good for: the list, and the app of the token.
func (r *request) scope() []byte { return []byte(r.route.path + "\n" + r.Grant.App) }

// cursorMember appends the cursor of the next page, if there is one.
func (s *Server) cursorMember(b []byte, r *request, next string) []byte {
	if next == "" {
		return b
	}
	b = append(wire.Member(b, "next_cursor"), '"')
	return append(base64.RawURLEncoding.AppendEncode(b, s.sealed().aead.Seal(nil, nil, []byte(next), r.scope())), '"')
}

// cursor reads the place that a cursor of this list names; "" is the beginning.
func (s *Server) cursor(r *request) (string, error) {
	text := r.query["cursor"]
	if text == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		b, err = s.sealed().aead.Open(nil, nil, b, r.scope())
	}
	if err != nil {
		return "", errBadCursor
	}
	return string(b), nil
}

// page reads limit and cursor.
func (s *Server) page(r *request) (after string, limit int, err error) {
	limit, err = r.number("limit", defaultLimit, 1, maxLimit)
	after, badCursor := s.cursor(r)
	return after, limit, problem.Together(err, badCursor)
}

var errBadCursor = problem.BadField("cursor", "bad_cursor", "was not issued by this server for this list and this token's app")

const defaultLimit, maxLimit = 100, 1000

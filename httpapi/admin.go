package httpapi

import (
	"bufio"
	"context"
	"path/filepath"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/engine/verify"
	"xtimer/httpapi/access"
	"xtimer/httpapi/conn"
	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

// verify is GET /v1/admin/verify: NDJSON, one line for each finding as it is
// made, and a verdict as the last line. An answer without a verdict, or with an
// error in its place, proves nothing. Empty lines say that the work goes on.
func (s *Server) verify(r *request) (reply, error) {
	v := verify.Request{To: s.now()}
	var err error
	if v.App, err = r.limitApp(r.query["app"]); err != nil {
		return reply{}, err
	}
	if _, ok := r.query["from"]; !ok {
		return reply{}, problem.BadField("from", "missing", "is needed")
	}
	for name, to := range map[string]*int64{"from": &v.From, "to": &v.To} {
		if text, ok := r.query[name]; ok {
			if *to, err = parseInstant(name, text); err != nil {
				return reply{}, err
			}
		}
	}
	if text, ok := r.query["late"]; ok {
		if v.Late, err = time.ParseDuration(text); err != nil || v.Late <= 0 {
			return reply{}, problem.BadField("late", "wrong_type", wire.Quote(text)+` is not a duration like "250ms"`)
		}
	}
	if err := s.e.CheckVerification(v); err != nil {
		return reply{}, err
	}
	h := &r.http.Response.Header
	if r.http.IsHead() {
		h.SetContentType("application/x-ndjson")
		return reply{sent: true}, nil
	}
	leave, err := s.verifying.Take(r.ctx, v.App)
	if err != nil {
		return reply{}, err
	}
	h.SetContentType("application/x-ndjson")
	h.Set(fasthttp.HeaderCacheControl, "no-store")
	conn.InPieces(r.http)
	r.http.SetBodyStreamWriter(func(w *bufio.Writer) {
		leave := sync.OnceFunc(leave)
		defer leave()
		s.streamVerdict(w, v, leave)
	})
	return reply{sent: true}, nil
}

// streamVerdict calls leave before the last line: who has read it may verify again.
func (s *Server) streamVerdict(w *bufio.Writer, v verify.Request, leave func()) {
	ctx, cancel := context.WithCancel(s.streams)
	lines, last := make(chan []byte), make(chan []byte, 1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		verdict, err := s.e.Verify(ctx, v, func(f *verify.Finding) error {
			select {
			case lines <- appendFinding(nil, f):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		if err != nil {
			s.log.Warn("cannot verify", "error", err)
			p := problem.Of(err)
			last <- append(wire.TextMember([]byte{'{'}, "error", p.Detail), "}\n"...)
			return
		}
		last <- appendVerdict(nil, &verdict)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	beat := time.NewTicker(s.cfg.Heartbeat)
	defer beat.Stop()
	for {
		var b []byte
		select {
		case b = <-lines:
		case b = <-last:
			leave()
			w.Write(b)
			w.Flush()
			return
		case <-beat.C:
			b = []byte{'\n'}
		}
		w.Write(b)
		if w.Flush() != nil {
			return
		}
	}
}

func appendFinding(b []byte, f *verify.Finding) []byte {
	b = wire.TextMember(append(b, '{'), "finding", f.Kind.String())
	b = wire.TextMember(b, "timer_id", f.Timer.String())
	b = wire.TextMember(b, "app", f.App)
	b = wire.TextMember(b, "name", f.Name)
	b = wire.TimeMember(b, "due", f.Due)
	if f.Count > 1 {
		b = wire.TimeMember(b, "due_last", f.DueLast)
	}
	b = wire.IntMember(b, "count", f.Count)
	return append(wire.TextMember(b, "detail", f.Detail), "}\n"...)
}

func appendVerdict(b []byte, v *verify.Verdict) []byte {
	verdict := "proven"
	if v.Failed() {
		verdict = "failed"
	}
	b = wire.TextMember(append(b, '{'), "verdict", verdict)
	b = wire.TimeMember(b, "from", v.From)
	b = wire.TimeMember(b, "to", v.To)
	b = wire.IntMember(b, "timers", v.Timers)
	b = wire.IntMember(b, "dues", v.Dues)
	b = wire.IntMember(b, "records", v.Records)
	b = wire.IntMember(b, "open", v.Open)
	b = wire.IntMember(b, "unkept", v.Unkept)
	b = append(wire.Member(b, "found"), '{')
	for k, n := range v.Found {
		if n > 0 {
			b = wire.IntMember(b, verify.FindingKind(k).String(), n)
		}
	}
	return append(b, "}}\n"...)
}

// verifyTurns are those of verifications, which read the whole history.
func verifyTurns() *access.Turns {
	return access.NewTurns(1, 2, 0, &problem.Problem{
		Status: fasthttp.StatusTooManyRequests, Code: "verifying", Retry: 10,
		Detail: "at most one verification of an app and two in all may run at a time: retry when one has ended",
	})
}

// backup is POST /v1/admin/backup: a new folder under BackupDir, named by the
// time. No part of the path comes from the request.
func (s *Server) backup(r *request) (reply, error) {
	if err := readOptional(r, new(struct{}), nil); err != nil {
		return reply{}, err
	}
	if r.Grant.App != access.AllApps {
		return reply{}, problem.Forbidden("a backup contains every app: the request needs an admin token for all apps")
	}
	if s.cfg.BackupDir == "" {
		return reply{}, &problem.Problem{
			Status: fasthttp.StatusConflict, Code: "no_backup_dir", Detail: "the server was started without --backup-dir",
		}
	}
	begin := time.Now()
	name := begin.UTC().Format("20060102T150405.000Z")
	if err := s.e.Backup(r.ctx, filepath.Join(s.cfg.BackupDir, name)); err != nil {
		return reply{}, err
	}
	return reply{status: fasthttp.StatusCreated, body: renderFunc(func(b []byte) []byte {
		b = wire.TextMember(append(b, '{'), "backup", name)
		return append(wire.AppendMillis(wire.Member(b, "took_ms"), time.Since(begin)), '}')
	})}, nil
}

package httpapi

import (
	"path/filepath"
	"time"

	"github.com/valyala/fasthttp"

	"xtimer/httpapi/access"
	"xtimer/httpapi/problem"
	"xtimer/httpapi/wire"
)

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

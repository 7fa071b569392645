package console

import (
	"errors"
	"net/http"

	"xtimer/httpapi/client"
)

// showSystem is GET /system.
func showSystem(v *visit) error { return v.system(nil) }

func (v *visit) system(done *client.Backup) error {
	d := systemData{Done: done}
	err := together(
		func() error { return into(&d.Stats)(v.api.Stats(v.ctx)) },
		func() error { return into(&d.Trend)(v.api.Trend(v.ctx, 1)) },
		func() error { return into(&d.Version)(v.api.Version(v.ctx)) },
		func() error {
			s, err := v.api.System(v.ctx)
			var problem *client.Error
			if errors.As(err, &problem) && problem.Status == http.StatusForbidden {
				return nil // the rest of the page is for everybody
			}
			d.System = s
			return err
		},
	)
	if err != nil {
		return err
	}
	return v.show("system", v.T("System"), &d)
}

type systemData struct {
	Stats   client.Stats
	Trend   client.Trend
	Version client.Version
	System  *client.System // nil: not for this visitor
	Done    *client.Backup // one that was just written
}

// backUp is POST /system/backup. It takes as long as it takes.
func backUp(v *visit) error {
	b, err := v.api.Backup(v.r.Context())
	if err != nil {
		return err
	}
	return v.system(b)
}

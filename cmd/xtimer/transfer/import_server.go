package transfer

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"xtimer/cmd/xtimer/definition"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/timer"
	api "xtimer/httpapi/client"
)

// serverTarget makes timers by a server's API.
type serverTarget struct {
	*home
	dryRun  bool
	earlier *earlier // of a dry run
}

func (s *serverTarget) take(ctx context.Context, batch []*item) error {
	var todo []*item
	var defs []api.Definition
	now := time.Now().UnixMilli()
	for _, i := range batch {
		switch {
		case !i.isWaiting() || i.skipFinished():
			continue
		case i.isHistory():
			i.set(resultSkipped, "a server does not accept records of tasks: import into a store")
			continue
		case i.App == "" || i.Name == "":
			i.fail(errors.New("the timer has no app or no name"))
			continue
		case i.isDisabled(now) && i.Stored.At != 0 && i.Stored.At <= now:
			i.set(resultSkipped, "its only due passed while the timer was disabled")
			continue
		}
		todo, defs = append(todo, i), append(defs, i.asAt())
	}
	if s.dryRun {
		return s.compare(ctx, todo, defs)
	}
	n := 0
	for res, err := range s.CreateAll(ctx, slices.Values(defs)) {
		if err != nil {
			return err
		}
		i := todo[n]
		n++
		switch {
		case res.Error != nil && res.Error.Status == http.StatusConflict:
			if err := s.hold(ctx, i, &defs[n-1], res.Error.Detail); err != nil {
				return err
			}
		case res.Error != nil:
			i.fail(s.explain(res.Error))
		case res.Status == http.StatusOK:
			i.set(api.Unchanged, "")
			if err := s.complete(ctx, i, res.ID); err != nil {
				return err
			}
		default:
			i.set(api.Created, "")
			if err := s.disable(ctx, i, res.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// explain is an error of the server on one line.
func (s *serverTarget) explain(err error) error { return errors.New(remote.OneLine(s.Explain(err))) }

// disable disables a timer again that was just made, if it was before.
func (s *serverTarget) disable(ctx context.Context, i *item, id string) error {
	if !i.isDisabled(time.Now().UnixMilli()) {
		return nil
	}
	_, err := s.Disable(ctx, id, api.Disabling{Reason: i.Stored.Reason, Until: timeOf(i.Stored.DisabledUntil)})
	if e := (*api.Error)(nil); errors.As(err, &e) {
		i.set(timer.ResultFailed, "the timer was created, but cannot be disabled: %v", err)
		return nil
	}
	return err
}

// complete disables a timer that exists if nobody has changed it since it was made: an
// import that was cut short, or whose answer was lost, made it and did not come to that.
func (s *serverTarget) complete(ctx context.Context, i *item, id string) error {
	if !i.isDisabled(time.Now().UnixMilli()) {
		return nil
	}
	t, err := s.Get(ctx, id)
	if api.IsNotFound(err) { // deleted since
		return nil
	}
	if err != nil || t.Version != 1 {
		return err
	}
	return s.disable(ctx, i, id)
}

func (i *item) isDisabled(now int64) bool {
	s := i.Stored
	return s != nil && (s.Status == api.Disabled || s.DisabledUntil > now)
}

// compare finds out what an import would do with timers: the server judges each of them.
func (s *serverTarget) compare(ctx context.Context, todo []*item, defs []api.Definition) error {
	answers := s.judge(ctx, todo, defs)
	for n, i := range todo {
		put, err := answers[n].put, answers[n].err
		var refused *api.Error
		switch {
		case errors.As(err, &refused) && refused.Status/100 == 4 && refused.Status != http.StatusTooManyRequests:
			i.fail(s.explain(refused))
			continue
		case err != nil:
			return err
		case put.Result == api.Unchanged:
			i.set(api.Unchanged, "")
			continue
		case put.Result == api.Updated: // import changes nothing that exists
			if err := s.hold(ctx, i, &defs[n], ""); err != nil {
				return err
			}
			continue
		}
		d, err := storedDefinition(&defs[n])
		if err != nil {
			i.fail(err)
			continue
		}
		s.earlier.add(i, 0, &d)
	}
	return nil
}

// judged is what the server would do with a timer.
type judged struct {
	put *api.PutResult
	err error
}

// judges ask the server at once.
const judges = 16

// judge asks the server what it would do with each timer; nothing is changed.
func (s *serverTarget) judge(ctx context.Context, todo []*item, defs []api.Definition) []judged {
	answers := make([]judged, len(todo))
	free := make(chan struct{}, judges)
	var wg sync.WaitGroup
	for n := range todo {
		free <- struct{}{}
		wg.Go(func() {
			answers[n].put, answers[n].err = s.Put(ctx, defs[n], api.DryRun())
			<-free
		})
	}
	wg.Wait()
	return answers
}

// hold finds the timer that a refused one would replace, and compares the two.
func (s *serverTarget) hold(ctx context.Context, i *item, d *api.Definition, refusal string) error {
	t, err := s.GetByName(ctx, i.App, i.Name)
	if api.IsNotFound(err) { // deleted since
		i.set(resultConflict, "%s", refusal)
		return nil
	}
	if err != nil {
		return err
	}
	if err := i.hold(t, *d); err != nil || s.dryRun || i.result != api.Unchanged {
		return err
	}
	return s.complete(ctx, i, t.ID)
}

// hold compares a timer that exists with what the item would make. A delay that ends at
// the instant of the item is the same.
func (i *item) hold(t *api.Timer, d api.Definition) error {
	standing := t.Definition
	if standing.Schedule.Delay != nil && !d.Schedule.At.IsZero() && t.NextDue.Equal(d.Schedule.At) {
		standing.Schedule.Delay, standing.Schedule.At = nil, d.Schedule.At
	}
	changes, err := definition.Diff(standing, d)
	switch {
	case err != nil:
		return err
	case len(changes) == 0:
		i.set(api.Unchanged, "")
	default:
		i.set(resultConflict, "a timer with another definition exists: %s differs", changes[0].Field)
	}
	return nil
}

package timer

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/definition"
	"xtimer/cmd/xtimer/document"
	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/terminal"
	api "xtimer/httpapi/client"
)

func newTimerApply(r *remote.Server) *cobra.Command {
	var a apply
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Create and change timers to match files",
		Long: `apply reads timers from files. It creates those that do not exist, changes those
that have another definition, and shows each changed field. Timers with the same
definition do not change, so a second apply changes nothing.

A file contains one or more documents of YAML or JSON. Each document is a timer, a
list of timers, or {"timers": […]}, in the form that the API accepts. From a folder,
apply reads all .yaml, .yml and .json files. An omitted field has its default.

With --prune, apply then deletes the timers that have the labels of -l and are in
none of the files. It asks for confirmation, and deletes nothing if a change failed.

With --dry-run, apply changes nothing: the server checks each timer that would be
created or changed, and warns of flow keys without a limit. The exit status is the
one that apply would have. This check does not look up the addresses of host names;
the server does that at each call.`,
		Example: `  xtimer timer apply -f timers.yaml --dry-run
  xtimer timer apply -f timers/ --prune -l team=a --yes
  xtimer timer list --app billing -o yaml | sed s/9000/9001/ | xtimer timer apply -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case len(a.files) == 0:
				return exit.Usage("required: --file")
			case a.prune && a.label == "":
				return exit.Usage("required: --label: --prune deletes only timers with labels that you name")
			case !a.prune && a.label != "":
				return exit.Usage("--label needs --prune")
			}
			a.Server, a.cmd = r, cmd
			return a.run(cmd.Context())
		},
	}
	fs := cmd.Flags()
	fs.StringArrayVarP(&a.files, "file", "f", nil, "apply this `FILE` or folder; -: stdin; may be repeated")
	fs.BoolVar(&a.prune, "prune", false, "delete the timers with the labels of -l that are in no file")
	fs.StringVarP(&a.label, "label", "l", "", "with --prune: delete only timers with these `LABELS`, for example team=a,env!=prod")
	fs.BoolVar(&a.dryRun, "dry-run", false, "only show what would change, and what the server would refuse")
	fs.BoolVar(&a.yes, "yes", false, "with --prune: do not ask for confirmation")
	return cmd
}

// apply is a run of timer apply: read the files, look what is there, plan, do.
type apply struct {
	*remote.Server
	cmd         *cobra.Command
	files       []string
	prune       bool
	label       string
	dryRun, yes bool
}

// applyWorkers make requests at once, so that their commits are shared.
const applyWorkers = 32

func (a *apply) run(ctx context.Context) error {
	sources, err := a.sources()
	if err != nil {
		return err
	}
	plan, err := a.plan(ctx, sources)
	if err != nil {
		return err
	}
	var doomed []*applied
	if a.prune {
		if doomed, err = a.doomed(ctx, sources); err != nil {
			return err
		}
	}
	if len(doomed) > 0 && !a.yes && !a.dryRun {
		if err := remote.Ask(a.cmd, fmt.Sprintf("Delete %d timers that are in no file?", len(doomed))); err != nil {
			return err
		}
	}

	if a.dryRun {
		a.put(ctx, slices.Concat(only(plan, api.Created), only(plan, api.Updated)), api.DryRun())
	} else {
		a.create(ctx, only(plan, api.Created))
		a.put(ctx, only(plan, api.Updated))
	}
	if len(only(plan, ResultFailed)) > 0 {
		return a.report(plan)
	}
	if a.dryRun {
		return a.report(append(plan, doomed...))
	}
	a.each(ctx, doomed, func(p *applied) error {
		_, err := a.Delete(ctx, p.id, api.IfMatch(p.version))
		if api.IsNotFound(err) {
			return nil
		}
		return err
	})
	return a.report(append(plan, doomed...))
}

// inApp gives the timers of files that name no app the app of -n. A file of another app
// is an error.
func inApp(sources []definition.Source, app string) error {
	if app == "" {
		return nil
	}
	for i, s := range sources {
		if s.App != "" && s.App != app {
			return exit.Usage("%s: the timer is of the app %s, not of %s as --app says", s.At.Line(), s.App, app)
		}
		sources[i].App = app
	}
	return nil
}

// checkNames sees that every timer of the files can be told from the others.
func checkNames(sources []definition.Source) error {
	if len(sources) == 0 {
		return exit.Usage("the files have no timer")
	}
	seen := map[[2]string]document.Place{}
	for _, s := range sources {
		if s.App == "" || s.Name == "" {
			return exit.Usage("%s: the timer needs an app and a name", s.At.Line())
		}
		key := [2]string{s.App, s.Name}
		if first, twice := seen[key]; twice {
			return exit.Usage("%s: %s/%s is also defined at %s", s.At.Line(), s.App, s.Name, first.Line())
		}
		seen[key] = s.At
	}
	return nil
}

// plan says what is to become of each timer of the files.
func (a *apply) plan(ctx context.Context, sources []definition.Source) ([]*applied, error) {
	there, err := a.there(ctx, sources)
	if err != nil {
		return nil, err
	}
	plan := make([]*applied, len(sources))
	for i, s := range sources {
		p := &applied{App: s.App, Name: s.Name, Result: api.Created, source: s}
		if t := there[[2]string{s.App, s.Name}]; t != nil {
			if p.Changes, err = definition.Diff(t.Definition, s.Definition); err != nil {
				return nil, err
			}
			if p.Result = api.Updated; len(p.Changes) == 0 {
				p.Result = api.Unchanged
			}
		}
		plan[i] = p
	}
	return plan, nil
}

// fewTimers of an app are asked for one by one; of more, the whole app is read.
const fewTimers = 100

// there are the timers of the files as the server has them.
func (a *apply) there(ctx context.Context, sources []definition.Source) (map[[2]string]*api.Timer, error) {
	byApp := map[string][]string{}
	for _, s := range sources {
		byApp[s.App] = append(byApp[s.App], s.Name)
	}
	there := map[[2]string]*api.Timer{}
	var few [][2]string
	for app, names := range byApp {
		if len(names) <= fewTimers {
			for _, name := range names {
				few = append(few, [2]string{app, name})
			}
			continue
		}
		for t, err := range a.Timers(ctx, api.TimerFilter{App: app}) {
			if err != nil {
				return nil, err
			}
			there[[2]string{t.App, t.Name}] = &t
		}
	}
	var mu sync.Mutex // guards there and failed
	var failed error
	atOnce(few, func(key [2]string) {
		t, err := a.GetByName(ctx, key[0], key[1])
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			there[key] = t
		case !api.IsNotFound(err) && failed == nil:
			failed = err
		}
	})
	return there, failed
}

// doomed are the timers that have the labels and are in no file.
func (a *apply) doomed(ctx context.Context, sources []definition.Source) (doomed []*applied, err error) {
	kept := map[[2]string]bool{}
	for _, s := range sources {
		kept[[2]string{s.App, s.Name}] = true
	}
	for t, err := range a.Timers(ctx, api.TimerFilter{App: a.App, Label: a.label}) {
		if err != nil {
			return nil, err
		}
		if !kept[[2]string{t.App, t.Name}] {
			doomed = append(doomed, &applied{App: t.App, Name: t.Name, Result: resultDeleted, id: t.ID, version: t.Version})
		}
	}
	return doomed, nil
}

// create makes the timers that are not there, in batches.
func (a *apply) create(ctx context.Context, work []*applied) {
	bar := terminal.NewProgress(a.cmd.ErrOrStderr(), int64(len(work)))
	defer bar.End()
	definitions := func(yield func(api.Definition) bool) {
		for _, p := range work {
			if !yield(p.source.Definition) {
				return
			}
		}
	}
	rest := work
	for made, err := range a.CreateAll(ctx, definitions) {
		switch {
		case err != nil:
			for _, p := range rest {
				p.fail(a.Explain(err))
			}
			return
		case made.Error != nil:
			rest[0].fail(a.Explain(made.Error))
		case made.Status == http.StatusOK:
			rest[0].Result = api.Unchanged // another request created it in the meantime
		}
		rest = rest[1:]
		bar.Step()
	}
}

// put changes the timers that are there already; of a dry run, the server says
// of any whether it would take it.
func (a *apply) put(ctx context.Context, work []*applied, options ...api.CallOption) {
	a.each(ctx, work, func(p *applied) error {
		put, err := a.Put(ctx, p.source.Definition, options...)
		if err == nil {
			p.Result, p.Warnings = put.Result, put.Warnings
		}
		return err
	})
}

// each does the work, much of it at once, and notes what failed.
func (a *apply) each(ctx context.Context, work []*applied, do func(*applied) error) {
	bar := terminal.NewProgress(a.cmd.ErrOrStderr(), int64(len(work)))
	defer bar.End()
	atOnce(work, func(p *applied) {
		if err := do(p); err != nil {
			p.fail(a.Explain(err))
		}
		bar.Step()
	})
}

// atOnce does all of the work, as much of it at the same time as there are workers.
func atOnce[T any](work []T, do func(T)) {
	next := make(chan T)
	var wg sync.WaitGroup
	for range min(applyWorkers, len(work)) {
		wg.Go(func() {
			for x := range next {
				do(x)
			}
		})
	}
	for _, x := range work {
		next <- x
	}
	close(next)
	wg.Wait()
}

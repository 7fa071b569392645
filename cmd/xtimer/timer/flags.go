package timer

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/remote"
	"xtimer/cmd/xtimer/span"
	api "xtimer/httpapi/client"
)

// fieldFlags has the flag for each field of a definition, by the field's path.
var fieldFlags = map[string]string{
	"app": "app", "name": "name",
	"schedule.cron": "cron", "schedule.time_zone": "time-zone", "schedule.every": "every", "schedule.at": "at", "schedule.delay": "delay",
	"schedule.start_at": "start-at", "schedule.end_at": "end-at", "schedule.max_runs": "max-runs", "schedule.jitter": "jitter",
	"callback.url": "url", "callback.method": "method", "callback.headers": "header", "callback.body": "body", "callback.body_text": "body-text",
	"callback.body_base64": "body-base64", "callback.timeout": "timeout", "callback.success": "success", "callback.batch": "batch",
	"retry.max_attempts": "max-attempts", "retry.backoff": "backoff", "retry.multiplier": "backoff-multiplier", "retry.max_backoff": "max-backoff",
	"retry.jitter": "backoff-jitter", "retry.max_age": "max-age",
	"misfire.policy": "misfire", "misfire.window": "misfire-window",
	"overlap": "overlap", "delivery": "delivery", "priority": "priority", "stale_after": "stale-after", "flow": "flow", "labels": "label",
}

// creation is the flags of create.
type creation struct {
	api.Definition
	files              []string
	every, delay       span.Value
	at, startAt, endAt string
	jitter             span.Value
	headers, labels    []string
	flow               []string
	secretHeaders      []string
	body, bodyText     string
	bodyBase64         []byte
	timeout            span.Value
	batch              int
	batchWait          span.Value
	backoff, maxBackoff, maxAge,
	window span.Value
	backoffJitter float64
	staleAfter    span.Value
	priority      int
}

// flags adds a flag for each field of a definition.
func (c *creation) flags(cmd *cobra.Command) {
	fs := cmd.Flags()
	s, call, retry := &c.Schedule, &c.Callback, &c.Retry
	fs.StringVar(&c.Name, "name", "", "the `NAME` of the timer, unique within the app")

	fs.StringVar(&s.Cron, "cron", "", "schedule: a cron `EXPRESSION` of 5 fields, or of 6 with seconds first, or @daily …")
	fs.StringVar(&s.TimeZone, "time-zone", "", "the IANA time `ZONE` of --cron (default UTC)")
	fs.Var(&c.every, "every", "schedule: an interval such as 250ms, 5m or 1d")
	fs.StringVar(&c.at, "at", "", "schedule: once, at this `TIME`: RFC 3339, Unix ms, or a time from now")
	fs.Var(&c.delay, "delay", "schedule: once, after this delay: 30m, 7d")
	fs.StringVar(&c.startAt, "start-at", "", "no due before this `TIME`; the intervals of --every count from this time")
	fs.StringVar(&c.endAt, "end-at", "", "no due after this `TIME`")
	fs.Int64Var(&s.MaxRuns, "max-runs", 0, "finish after this `NUMBER` of dues (default: no limit)")
	fs.Var(&c.jitter, "jitter", "delay each due by a random time up to this")

	fs.StringVar(&call.URL, "url", "", "call this `URL`")
	fs.StringVar(&call.Method, "method", "", "the HTTP `METHOD` of the call (default POST)")
	fs.StringArrayVar(&c.headers, "header", nil, "a header of the call, `NAME: VALUE`; may be repeated")
	fs.StringArrayVar(&c.secretHeaders, "secret-header", nil, "a header of the call whose value is a secret of the app, `NAME: SECRET`; may be repeated")
	fs.StringVar(&c.body, "body", "", "the body as `JSON` (default: a description of the task)")
	fs.StringVar(&c.bodyText, "body-text", "", "the body as `TEXT`")
	fs.BytesBase64Var(&c.bodyBase64, "body-base64", nil, "the body as any bytes, in base64")
	fs.Var(&c.timeout, "timeout", "the longest duration of an attempt (default 15s)")
	fs.StringVar(&call.Success, "success", "", "the status `CODES` that mean success: 200,202,300-399 (default 2xx)")
	fs.IntVar(&c.batch, "batch", 0, "send up to this `NUMBER` of tasks in one call, 2 to 1000: tasks of the app whose callbacks differ only in the body (default: one call for each)")
	fs.Var(&c.batchWait, "batch-wait", "let a batch wait for more tasks until so long after its first due, up to 1s (default 0s)")

	fs.IntVar(&retry.MaxAttempts, "max-attempts", 0, "the largest `NUMBER` of attempts of a task (default 4)")
	fs.Var(&c.backoff, "backoff", "the wait before the second attempt (default 1s)")
	fs.Float64Var(&retry.Multiplier, "backoff-multiplier", 0, "multiply each further wait by this `FACTOR` (default 4)")
	fs.Var(&c.maxBackoff, "max-backoff", "the longest wait between two attempts (default 5m)")
	fs.Float64Var(&c.backoffJitter, "backoff-jitter", 0, "vary each wait by up to this `FRACTION`, from 0 to 1 (default 0.2)")
	fs.Var(&c.maxAge, "max-age", "start no attempt later than this after the due (default 24h)")

	fs.StringVar(&c.Misfire.Policy, "misfire", "", "the `POLICY`: which dues to call that are over 10s late when the server starts or the clock is set forward: skip (none), latest or all (default latest)")
	fs.Var(&c.window, "misfire-window", "under --misfire, do not call dues that are later than this; they are recorded as missed (default 24h)")
	fs.StringVar(&c.Overlap, "overlap", "", "the `POLICY` if the previous task is unfinished at the next due: allow both, skip the new task, or queue it (default allow)")
	fs.StringVar(&c.Delivery, "delivery", "", "the `GUARANTEE`: at_least_once, or at_most_once: do not repeat a call that may have been sent (default at_least_once)")
	fs.Var(&c.staleAfter, "stale-after", "start the first attempt no later than this after the due, 10ms to 24h (default: the value of --max-age)")
	fs.IntVar(&c.priority, "priority", 0, "when calls of the app to the target have to wait, higher priorities go first: 0 to 9 (default 5)")
	fs.StringSliceVar(&c.flow, "flow", nil, "the `KEYS` whose limits the calls keep to, at most 4, with commas between; see xtimer flow")
	fs.StringArrayVar(&c.labels, "label", nil, "a label, `KEY=VALUE`; may be repeated")

	for _, name := range fieldFlags {
		if f := fs.Lookup(name); f != nil && f.Value.Type() == "duration" { // app is a flag of all commands of timers
			f.DefValue = "" // the server has the defaults; the texts name them
		}
	}
	for flag, words := range map[string][]string{
		"misfire": {"skip", "latest", "all"}, "overlap": {"allow", "skip", "queue"}, "delivery": {"at_least_once", "at_most_once"},
		"method": {"DELETE", "GET", "PATCH", "POST", "PUT"},
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
}

// given is the first flag of a definition that the command line has; "": none.
func (c *creation) given(cmd *cobra.Command) (first string) {
	for _, flag := range fieldFlags {
		if cmd.Flags().Changed(flag) && (first == "" || flag < first) {
			first = flag
		}
	}
	return first
}

// definition is the timer that the flags describe. The server judges the values.
func (c *creation) definition(cmd *cobra.Command, app string) (*api.Definition, error) {
	d, given := &c.Definition, cmd.Flags().Changed
	d.App = app
	if err := c.complete(cmd, app); err != nil {
		return nil, err
	}
	for _, flag := range notZero {
		if v := cmd.Flags().Lookup(flag).Value.String(); given(flag) && (v == "0" || v == "0s") {
			return nil, exit.Usage("--%s: must be greater than 0; omit the flag for the default", flag)
		}
	}
	d.Schedule.Every, d.Schedule.Jitter, d.StaleAfter = time.Duration(c.every), time.Duration(c.jitter), api.Duration(c.staleAfter)
	d.Flow = c.flow
	d.Callback.Timeout, d.Callback.BodyBase64 = time.Duration(c.timeout), c.bodyBase64
	d.Retry.Backoff, d.Retry.MaxBackoff, d.Retry.MaxAge = time.Duration(c.backoff), time.Duration(c.maxBackoff), time.Duration(c.maxAge)
	for flag, set := range map[string]func(){
		"delay":          func() { d.Schedule.Delay = new(time.Duration(c.delay)) },
		"body-text":      func() { d.Callback.BodyText = &c.bodyText },
		"priority":       func() { d.Priority = &c.priority },
		"batch":          func() { d.Callback.Batch = &api.Batch{Max: c.batch, Wait: api.Duration(c.batchWait)} },
		"backoff-jitter": func() { d.Retry.Jitter = &c.backoffJitter },
		"misfire-window": func() { d.Misfire.Window = new(time.Duration(c.window)) },
	} {
		if given(flag) {
			set()
		}
	}
	for flag, to := range map[string]struct {
		from string
		to   *time.Time
	}{"at": {c.at, &d.Schedule.At}, "start-at": {c.startAt, &d.Schedule.StartAt}, "end-at": {c.endAt, &d.Schedule.EndAt}} {
		var err error
		if *to.to, err = remote.Ahead(to.from, time.Now()); err != nil {
			return nil, exit.Usage("--%s: %w", flag, err)
		}
	}
	if given("batch-wait") && !given("batch") {
		return nil, exit.Usage("--batch-wait needs --batch")
	}
	if given("body") {
		if !json.Valid([]byte(c.body)) {
			return nil, exit.Usage("--body: %q is not JSON; for other text use --body-text", c.body)
		}
		d.Callback.Body = json.RawMessage(c.body)
	}
	var err error
	if d.Callback.Headers, err = pairs("header", c.headers, ":"); err != nil {
		return nil, err
	}
	if d.Callback.SecretHeaders, err = pairs("secret-header", c.secretHeaders, ":"); err != nil {
		return nil, err
	}
	if d.Labels, err = pairs("label", c.labels, "="); err != nil {
		return nil, err
	}
	return d, nil
}

// notZero are the flags whose zero the request would not have, so that the server would use
// its default instead.
var notZero = []string{"every", "max-runs", "timeout", "max-attempts", "backoff", "backoff-multiplier", "max-backoff", "max-age", "stale-after"}

// complete names all flags that are missing, at once.
func (c *creation) complete(cmd *cobra.Command, app string) error {
	given := cmd.Flags().Changed
	var missing []string
	if app == "" {
		missing = append(missing, "--app")
	}
	for _, flag := range []string{"name", "url"} {
		if !given(flag) {
			missing = append(missing, "--"+flag)
		}
	}
	if !given("cron") && !given("every") && !given("at") && !given("delay") {
		missing = append(missing, "one of --cron, --every, --at and --delay")
	}
	if len(missing) == 0 {
		return nil
	}
	return exit.Usage("required: %s", strings.Join(missing, ", "))
}

// withFlags names the flags in an error about fields that they set.
func withFlags(err error) error {
	var e *api.Error
	if errors.As(err, &e) {
		for i, f := range e.Fields {
			path := f.Field
			if path == "callback.batch.wait" {
				e.Fields[i].Field = "--batch-wait"
				continue
			} else if path == "callback.batch.max" {
				path = "callback.batch"
			} else if strings.HasPrefix(path, "callback.headers.") {
				path = "callback.headers"
			} else if strings.HasPrefix(path, "labels.") {
				path = "labels"
			}
			if flag := fieldFlags[path]; flag != "" {
				e.Fields[i].Field = "--" + flag
			}
		}
	}
	return err
}

func pairs(flag string, given []string, between string) (map[string]string, error) {
	if len(given) == 0 {
		return nil, nil
	}
	all := map[string]string{}
	for _, s := range given {
		k, v, ok := strings.Cut(s, between)
		k, v = strings.TrimSpace(k), strings.TrimSpace(v)
		if !ok || k == "" {
			return nil, exit.Usage("--%s: %q is not NAME%sVALUE", flag, s, between)
		}
		if _, twice := all[k]; twice {
			return nil, exit.Usage("--%s: %q is given twice", flag, k)
		}
		all[k] = v
	}
	return all, nil
}

package transfer

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/timer"
	api "xtimer/httpapi/client"
	"xtimer/tier/mysql"
)

// originalReader reads the timers of the original XTimer.
func originalReader(dsn, zone string) (reader, error) {
	where, err := time.LoadLocation(zone)
	if err != nil {
		return nil, exit.Usage("--time-zone: %w", err)
	}
	return func(ctx context.Context, yield func(*item) error) error {
		return mysql.ReadOriginal(ctx, dsn, func(row mysql.OriginalRow) error {
			for _, i := range originalItems(&row, where, time.Now()) {
				if err := yield(i); err != nil {
					return err
				}
			}
			return nil
		})
	}, nil
}

// The statuses of the original.
const (
	originalDisabled = 1
	originalEnabled  = 2
)

// originalItems are the timers that a row becomes: one, or one for each span of
// its years.
func originalItems(row *mysql.OriginalRow, where *time.Location, now time.Time) []*item {
	one := &item{at: "timer " + strconv.FormatInt(row.ID, 10)}
	one.App, one.Name = row.App, row.Name
	if row.Deleted {
		one.set(resultSkipped, "the timer is deleted")
		return []*item{one}
	}
	if row.Status != originalDisabled && row.Status != originalEnabled {
		one.set(timer.ResultFailed, "status %d is neither 1 (disabled) nor 2 (enabled)", row.Status)
		return []*item{one}
	}
	callback, err := originalCallback(row.NotifyHTTPParam)
	if err != nil {
		one.fail(err)
		return []*item{one}
	}
	cron, years, err := sevenFields(row.Cron)
	if err != nil {
		one.fail(fmt.Errorf("cron %q: %w", row.Cron, err))
		return []*item{one}
	}
	one.Schedule = api.Schedule{Cron: cron, TimeZone: where.String()}
	one.Callback = callback
	one.Labels = map[string]string{"original": strconv.FormatInt(row.ID, 10)}
	if row.Status == originalDisabled {
		one.Stored = &stored{Status: api.Disabled, Reason: "disabled in the original"}
	}
	if years == nil {
		return []*item{one}
	}
	if years[len(years)-1].last < now.In(where).Year() {
		one.set(resultSkipped, "cron %q: all its years have passed", row.Cron)
		return []*item{one}
	}
	if len(years) > maxSpans {
		one.set(timer.ResultFailed, "cron %q: its years form %d spans and need as many timers; at most %d are created", row.Cron, len(years), maxSpans)
		return []*item{one}
	}
	var all []*item
	for _, span := range years {
		i := *one
		i.Schedule.StartAt = time.Date(span.first, 1, 1, 0, 0, 0, 0, where)
		i.Schedule.EndAt = time.Date(span.last+1, 1, 1, 0, 0, 0, -int(time.Millisecond), where)
		if len(years) > 1 { // named by its years: they stay when others are over
			i.Name = fmt.Sprintf("%s-%d", one.Name, span.first)
		}
		if span.last < now.In(where).Year() {
			i.set(resultSkipped, "all its years have passed")
		}
		all = append(all, &i)
	}
	return all
}

// maxSpans of years without a hole in between, a timer each.
const maxSpans = 12

// originalCallback reads notify_http_param.
func originalCallback(param string) (c api.Callback, err error) {
	var p struct {
		Method string            `json:"method"`
		URL    string            `json:"url"`
		Header map[string]string `json:"header"`
		Body   string            `json:"body"`
	}
	if err := json.Unmarshal([]byte(param), &p); err != nil {
		return c, fmt.Errorf("notify_http_param: %w", err)
	}
	c = api.Callback{URL: p.URL, Method: strings.ToUpper(p.Method), Headers: p.Header}
	if c.Method == "" {
		c.Method = "GET" // as net/http takes it, which the original calls by
	}
	switch {
	case c.Method != "GET":
		c.BodyText = &p.Body // an empty one too, or the default would be sent
	case p.Body != "":
		return c, fmt.Errorf("notify_http_param: a GET request must not have a body; this request has %d bytes", len(p.Body))
	}
	return c, nil
}

package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Task is the task with that key.
func (c *Client) Task(ctx context.Context, key string) (*Task, error) {
	return get[Task](ctx, c, path("/v1/tasks/%s", key), nil)
}

// TaskPage is one page of the tasks that f selects, newest first: up to limit
// (0: the server's 100) after the cursor of the page before ("": the first).
func (c *Client) TaskPage(ctx context.Context, f TaskFilter, limit int, cursor string) (*TaskList, error) {
	return get[TaskList](ctx, c, "/v1/tasks", page(f.query(), limit, cursor))
}

// Tasks are all tasks that f selects, newest first. An error is the last thing
// it yields.
func (c *Client) Tasks(ctx context.Context, f TaskFilter) iter.Seq2[Task, error] {
	return pages(func(cursor string) ([]Task, string, error) {
		l, err := c.TaskPage(ctx, f, pageSize, cursor)
		if err != nil {
			return nil, "", err
		}
		return l.Tasks, l.NextCursor, nil
	})
}

func (f *TaskFilter) query() url.Values {
	q := make(url.Values)
	set(q, "app", f.App)
	set(q, "timer_id", f.TimerID)
	set(q, "status", strings.Join(f.Statuses, ","))
	set(q, "origin", f.Origin)
	set(q, "code", f.Code)
	set(q, "q", f.Search)
	if f.Dismissed != nil {
		q.Set("dismissed", strconv.FormatBool(*f.Dismissed))
	}
	setTime(q, "from", f.From)
	setTime(q, "to", f.To)
	return q
}

func setTime(q url.Values, name string, t time.Time) {
	if !t.IsZero() {
		text, _ := instant(t).MarshalText()
		q.Set(name, string(text))
	}
}

// Retry makes a failed, dead or unknown task again, under the same key.
func (c *Client) Retry(ctx context.Context, key string) error {
	_, err := c.keyOf(ctx, path("/v1/tasks/%s/retry", key), nil)
	return err
}

// Dismiss says that nothing is left to do about a failed, dead, missed or unknown task.
func (c *Client) Dismiss(ctx context.Context, key string) (*Task, error) {
	return send[Task](ctx, c, request{method: http.MethodPost, path: path("/v1/tasks/%s/dismiss", key), twice: true})
}

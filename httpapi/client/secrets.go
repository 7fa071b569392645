package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// Secret is a secret of an app, without its value, which no answer has.
type Secret struct {
	App       string    `json:"app"`
	Name      string    `json:"name"`
	Version   int       `json:"version"` // counts every change; for IfMatch
	UpdatedAt time.Time `json:"updated_at"`
	UpdatedBy string    `json:"updated_by,omitempty"` // the name of the token that set it
}

func objectPath(app, kind, name string) string {
	return path("/v1/apps/%s/"+kind+"/%s", app, name)
}

// PutSecret sets the value of a secret, and says Created, Updated or Unchanged. From then on
// each attempt of a callback that names the secret sends this value.
func (c *Client) PutSecret(ctx context.Context, app, name, value string, options ...CallOption) (string, error) {
	body := struct {
		Value string `json:"value"`
	}{value}
	q := request{method: http.MethodPut, path: objectPath(app, "secrets", name), body: body, twice: true}
	out, err := send[struct{ Result string }](ctx, c, q, options...)
	if err != nil {
		return "", err
	}
	return out.Result, nil
}

// Secret finds a secret, without its value.
func (c *Client) Secret(ctx context.Context, app, name string) (*Secret, error) {
	return get[Secret](ctx, c, objectPath(app, "secrets", name), nil)
}

// Secrets are all secrets of an app, in the order of their names. An error is the last thing
// it yields.
func (c *Client) Secrets(ctx context.Context, app string) iter.Seq2[Secret, error] {
	return pages(func(cursor string) ([]Secret, string, error) {
		out, err := get[struct {
			Secrets    []Secret `json:"secrets"`
			NextCursor string   `json:"next_cursor"`
		}](ctx, c, path("/v1/apps/%s/secrets", app), page(make(url.Values), pageSize, cursor))
		if err != nil {
			return nil, "", err
		}
		return out.Secrets, out.NextCursor, nil
	})
}

// DeleteSecret deletes a secret. Calls that name it are not made until it is set again.
func (c *Client) DeleteSecret(ctx context.Context, app, name string, options ...CallOption) error {
	_, err := c.delete(ctx, objectPath(app, "secrets", name), options)
	return err
}

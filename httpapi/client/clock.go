package client

import (
	"context"
	"net/http"
)

// ResetClock says that the server's clock is right, and that a former one, which was ahead
// of it, was wrong: dues between the two that were not called count again. It needs an
// admin token of all apps. More than 10,000 timers go on after the answer: see Wait.
func (c *Client) ResetClock(ctx context.Context, options ...CallOption) (*Operation, error) {
	return send[Operation](ctx, c, request{method: http.MethodPost, path: "/v1/system/clock/reset"}, options...)
}

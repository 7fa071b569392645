package exit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	api "xtimer/httpapi/client"
)

// Error is an error with an exit status of its own.
type Error struct {
	status int
	error
}

func (e Error) Unwrap() error { return e.error }

// With gives an error an exit status.
func With(status int, err error) error { return Error{status, err} }

// Usage returns the error for an invalid command line or file.
func Usage(format string, args ...any) error {
	return Error{StatusUsage, fmt.Errorf(format, args...)}
}

// NotFound returns the error for an object that does not exist.
func NotFound(format string, args ...any) error {
	return Error{StatusNotFound, fmt.Errorf(format, args...)}
}

// StatusOf returns the exit status of a command that ended with err.
func StatusOf(err error) int {
	var own Error
	var answer *api.Error
	var request *url.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &own):
		return own.status
	case errors.As(err, &answer):
		return statusOfAnswer(answer)
	case errors.Is(err, context.Canceled):
		return StatusInterrupted
	case errors.As(err, &request), errors.Is(err, context.DeadlineExceeded):
		return StatusUnavailable
	}
	return StatusFailed
}

func statusOfAnswer(answer *api.Error) int {
	if answer.Code == "quota_exceeded" {
		return StatusExceeded
	}
	switch answer.Status {
	case http.StatusNotFound:
		return StatusNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return StatusConflict
	case http.StatusUnauthorized, http.StatusForbidden:
		return StatusDenied
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusInsufficientStorage:
		return StatusUnavailable
	}
	if answer.Status/100 == 4 {
		return StatusRefused
	}
	return StatusFailed
}

// ErrSaid is the error of a command that has already printed the cause.
var ErrSaid = errors.New("the cause is already printed")

// Partly returns the error of several operations of which some failed. The command has
// already printed each failure; why is the first one.
func Partly(all, failed int, why error) error {
	switch {
	case failed == 0:
		return nil
	case failed == all && all == 1:
		return why
	case failed == all:
		return With(StatusOf(why), fmt.Errorf("all %d failed", all))
	}
	return With(StatusPartly, fmt.Errorf("%d of %d failed", failed, all))
}

package exit

import (
	"errors"
	"fmt"

	api "xtimer/httpapi/client"
)

// The exit statuses of the commands that speak to a server.
const (
	StatusFailed   = 1 // the server refused the request, or could not be reached
	StatusUsage    = 2 // the command line or a file is invalid: no request was sent
	StatusNotFound = 3
	StatusPartly   = 4 // some of several operations succeeded, and some failed
)

// Help describes the exit statuses in the help of a command.
const Help = `Exit status: 0 success; 1 the server refused the request or cannot be reached;
2 the command line or a file is invalid, and nothing was done; 3 not found; 4
some of several operations succeeded and some failed.`

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

// StatusOf returns the exit status of a command that ended with err.
func StatusOf(err error) int {
	var s Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &s):
		return s.status
	case api.IsNotFound(err):
		return StatusNotFound
	}
	return StatusFailed
}

// ErrSaid is the error of a command that has said already what is wrong.
var ErrSaid = errors.New("said already")

// Partly is the error of several, of which some failed. Which, has been said.
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

package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Error is what the server answered instead: an application/problem+json.
type Error struct {
	Status int          `json:"status"`
	Code   string       `json:"code"` // stable, for programs
	Title  string       `json:"title"`
	Detail string       `json:"detail"`
	Fields []FieldError `json:"errors,omitempty"`
	// RetryAfter is how long the server asks to wait; 0: it does not say.
	RetryAfter time.Duration `json:"-"`
}

// FieldError is what is wrong with one field, parameter or header.
type FieldError struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

func (e *Error) Error() string {
	if e.Detail == "" {
		return fmt.Sprintf("the server responded with %d %s", e.Status, http.StatusText(e.Status))
	}
	return fmt.Sprintf("the server responded with %d: %s", e.Status, e.Detail)
}

// IsNotFound reports whether the server answered 404.
func IsNotFound(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusNotFound
}

// passes reports whether the same request may be taken a little later. One that is beyond
// what an app may have is taken only after something of the app was deleted.
func (e *Error) passes() bool {
	return e.Status == http.StatusServiceUnavailable || e.Status == http.StatusTooManyRequests && e.Code != "quota_exceeded"
}

// readError is errorOf an answer that was not read yet.
func readError(resp *http.Response) error {
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("cannot read the server's response: %w", err)
	}
	return errorOf(&answer{resp.StatusCode, resp.Header, b})
}

// errorOf reads an answer that is none of the good ones. What is not a problem,
// for it comes from something in between, has only a status.
func errorOf(a *answer) *Error {
	e := &Error{}
	if json.Unmarshal(a.body, e) != nil {
		e = &Error{}
	}
	e.Status, e.RetryAfter = a.status, retryAfter(a.header, time.Now())
	return e
}

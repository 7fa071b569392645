package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	api "xtimer/httpapi/client"
)

// explained is an error of a request in words for people: what is wrong, and what to do.
type explained struct {
	text string
	error
}

func (e explained) Error() string { return e.text }
func (e explained) Unwrap() error { return e.error }

// Explain returns an error of a request to the server in words for people. Its exit status
// stays the same. Several invalid fields are several lines.
func (p *Place) Explain(err error) error {
	var done explained
	var answer *api.Error
	var failed *url.Error
	switch {
	case err == nil || errors.As(err, &done):
		return err
	case errors.As(err, &answer):
		if text := p.explainAnswer(answer); text != "" {
			return within(err, answer, text)
		}
	case errors.Is(err, context.Canceled):
		return explained{"interrupted", err}
	case errors.As(err, &failed):
		return within(err, failed, p.explainNetwork(failed))
	}
	return err
}

// within is err with other words for the error within it: what was being done stays.
func within(err, inner error, text string) error {
	return explained{strings.Replace(err.Error(), inner.Error(), text, 1), err}
}

// OneLine is the text of an error that Explain has returned, on one line.
func OneLine(err error) string {
	head, rest, _ := strings.Cut(err.Error(), "\n  ")
	if rest == "" {
		return head
	}
	return head + " " + strings.ReplaceAll(rest, "\n  ", "; ")
}

func (p *Place) explainAnswer(e *api.Error) string {
	switch {
	case e.Status == http.StatusUnauthorized && p.tokenFrom == "":
		return fmt.Sprintf("the server %s needs a token: set XTIMER_TOKEN, or use a context that has one (xtimer context set)", p.url)
	case e.Status == http.StatusUnauthorized:
		return fmt.Sprintf("the server %s does not accept the token of %s: %s", p.url, p.tokenFrom, e.Detail)
	case e.Status == http.StatusForbidden && p.tokenFrom != "":
		return fmt.Sprintf("the token of %s does not allow this: %s", p.tokenFrom, e.Detail)
	case e.Code == "":
		return fmt.Sprintf("%s responded with %d %s, but is not an xtimer server: check the address", p.url, e.Status, http.StatusText(e.Status))
	case e.Code == "name_taken":
		return e.Detail + "; to change it, use: xtimer timer apply"
	case e.Code == "quota_exceeded":
		return e.Detail + "; delete timers, or wait until some have ended; an admin can change the quota: xtimer app quota"
	case e.Code == "version_mismatch" || e.Code == "changed_meanwhile":
		return "the timer was changed in the meantime: read it again and repeat"
	case e.Status == http.StatusInternalServerError:
		return fmt.Sprintf("the server %s failed: %s", p.url, e.Detail)
	case len(e.Fields) == 1:
		return e.Fields[0].Field + ": " + e.Fields[0].Detail
	case len(e.Fields) > 1:
		var b strings.Builder
		fmt.Fprintf(&b, "%d fields are invalid:", len(e.Fields))
		for _, f := range e.Fields {
			fmt.Fprintf(&b, "\n  %s: %s", f.Field, f.Detail)
		}
		return b.String()
	}
	return e.Detail
}

func (p *Place) explainNetwork(err *url.Error) string {
	var lookup *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED) && p.isLoopback():
		return fmt.Sprintf("no server at %s; start one with: xtimer serve", p.url)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("no server at %s: the connection was refused", p.url)
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return fmt.Sprintf("no server at %s: the host %q is unknown", p.url, lookup.Name)
	case err.Timeout():
		return fmt.Sprintf("the server %s does not respond in time", p.url)
	}
	return fmt.Sprintf("cannot reach the server %s: %v", p.url, err.Err)
}

func (p *Place) isLoopback() bool {
	u, err := url.Parse(p.url)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip.IsLoopback()
}

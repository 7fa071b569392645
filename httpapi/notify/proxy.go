package notify

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"xtimer/engine/alert"
)

// proxy is that of a channel; the zero one is none.
type proxy struct {
	url      *url.URL
	text     string
	password string
}

// proxyKey is the key of a *url.URL in the context of a request.
type proxyKey struct{}

// proxyOf is the proxy of a request, as http.Transport asks for it.
func proxyOf(q *http.Request) (*url.URL, error) {
	u, _ := q.Context().Value(proxyKey{}).(*url.URL)
	return u, nil
}

// proxy reads the proxy of a channel. What is not empty in bad is why nothing is sent: a target
// whose URL has an address that may not be called is refused here, for the proxy dials it.
func (s *Sender) proxy(text, to string) (p proxy, bad alert.Result) {
	if text == "" {
		return p, bad
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return p, alert.Result{Final: true, Error: "the URL of the proxy is not valid"} // it may be a secret
	}
	if s.cfg.Forbids != nil {
		if err := s.cfg.Forbids(to); err != nil {
			return p, alert.Result{Error: err.Error()}
		}
	}
	p.url, p.text = u, text
	p.password, _ = u.User.Password()
	return p, bad
}

func (p *proxy) context(ctx context.Context) context.Context {
	if p.url == nil {
		return ctx
	}
	return context.WithValue(ctx, proxyKey{}, p.url)
}

// without is a text without the URL of the proxy and its password.
func (p *proxy) without(text string) string {
	for _, part := range []string{p.text, p.password} {
		if part != "" {
			text = strings.ReplaceAll(text, part, "…")
		}
	}
	return text
}

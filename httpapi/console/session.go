package console

import (
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"xtimer/httpapi/client"
)

const (
	sessionCookie = "xtimer_session"
	sessionLength = 12 * time.Hour
	// maxSessions bounds those of one token; its oldest goes first.
	maxSessions = 200
)

// sessions are the visitors who have signed in: the cookie is a random name, and
// the token stays here. A restart ends them all.
type sessions struct {
	mu   sync.Mutex
	byID map[string]session  // guarded by mu
	of   map[string][]string // the ids of a token, oldest first; guarded by mu
}

type session struct {
	token string
	until time.Time
}

func (s *sessions) begin(token string, now time.Time) (id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID, s.of = make(map[string]session), make(map[string][]string)
	}
	for ids := s.of[token]; len(ids) > 0 && (len(ids) >= maxSessions || now.After(s.byID[ids[0]].until)); ids = s.of[token] {
		s.drop(ids[0])
	}
	id = rand.Text()
	s.byID[id] = session{token, now.Add(sessionLength)}
	s.of[token] = append(s.of[token], id)
	return id
}

// drop ends a session. mu is held.
func (s *sessions) drop(id string) {
	token := s.byID[id].token
	delete(s.byID, id)
	s.of[token] = slices.DeleteFunc(s.of[token], func(x string) bool { return x == id })
	if len(s.of[token]) == 0 {
		delete(s.of, token)
	}
}

func (s *sessions) find(id string, now time.Time) (token string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, ok := s.byID[id]
	if !ok || !now.Before(x.until) {
		return "", false
	}
	return x.token, true
}

// Token is the token of the session that a Cookie header names; "": it names none.
func (c *console) Token(cookies string) string {
	r := http.Request{Header: http.Header{"Cookie": {cookies}}}
	k, err := r.Cookie(sessionCookie)
	if err != nil {
		return ""
	}
	token, _ := c.sessions.find(k.Value, time.Now())
	return token
}

func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.byID[id]; ok {
		s.drop(id)
	}
}

func showSignIn(v *visit) error {
	if v.grant.Role != "" {
		return redirect(inside(v.query("to")))
	}
	return v.show("signin", v.T("Sign in"), struct{ To, Error string }{inside(v.query("to")), ""})
}

// signIn begins a session for a token that the API knows.
func signIn(v *visit) error {
	token, to := v.r.PostForm.Get("token"), inside(v.r.PostForm.Get("to"))
	grant, err := v.c.client(token).Grant(v.ctx)
	if err != nil {
		var problem *client.Error
		if !errors.As(err, &problem) || problem.Status != http.StatusUnauthorized {
			return err
		}
		v.status = http.StatusUnauthorized
		return v.show("signin", v.T("Sign in"), struct{ To, Error string }{to, v.T("The server does not know this token.")})
	}
	if !grant.Needed { // any token would do, and each would have its sessions
		return redirect(to)
	}
	v.c.sessions.end(v.session)
	v.setCookie(&http.Cookie{Name: sessionCookie, Value: v.c.sessions.begin(token, v.Now), HttpOnly: true})
	return redirect(to)
}

func signOut(v *visit) error {
	v.c.sessions.end(v.session)
	v.setCookie(&http.Cookie{Name: sessionCookie, MaxAge: -1, HttpOnly: true})
	return redirect("/sign-in")
}

// setCookie sets one that only this site sees, and only over TLS if it came so.
func (v *visit) setCookie(k *http.Cookie) {
	k.Path, k.SameSite = "/", http.SameSiteStrictMode
	k.Secure = v.r.TLS != nil || v.r.Header.Get("X-Forwarded-Proto") == "https"
	http.SetCookie(v.w, k)
}

const (
	themeCookie    = "xtimer_theme"
	languageCookie = "xtimer_lang"
	year           = 365 * 24 * 3600
)

// prefer keeps a language, a theme or a zone.
func prefer(v *visit) error {
	for name, cookie := range map[string]string{"lang": languageCookie, "theme": themeCookie, "zone": zoneCookie} {
		switch value := v.r.PostForm.Get(name); value {
		case "en", "zh", "light", "dark", "utc", "mine":
			v.setCookie(&http.Cookie{Name: cookie, Value: value, MaxAge: year})
		case "auto", "timer":
			v.setCookie(&http.Cookie{Name: cookie, MaxAge: -1})
		}
	}
	return redirect(inside(v.r.PostForm.Get("to")))
}

package console

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"xtimer/httpapi/client"
	"xtimer/httpapi/console/words"
)

// visit is one request of a visitor: what every page knows.
type visit struct {
	c       *console
	w       http.ResponseWriter
	r       *http.Request
	ctx     context.Context
	session string // "" where no token is needed, or nobody has signed in
	token   string
	api     *client.Client
	grant   client.Grant
	status  int
	app     string // that the page is about; "": that of the query, or all

	words.Language
	zones
	Theme string // light, dark, or "" for what the machine prefers
	Now   time.Time
}

func (c *console) visit(w http.ResponseWriter, r *http.Request) *visit {
	v := &visit{c: c, w: w, r: r, ctx: r.Context(), Language: languageOf(r), zones: zonesOf(r), Now: time.Now().UTC()}
	if k, err := r.Cookie(themeCookie); err == nil && (k.Value == "light" || k.Value == "dark") {
		v.Theme = k.Value
	}
	if k, err := r.Cookie(sessionCookie); err == nil {
		if token, ok := c.sessions.find(k.Value, v.Now); ok {
			v.session, v.token = k.Value, token
		}
	}
	v.api = c.client(v.token)
	return v
}

// languageOf is the visitor's choice, or the browser's.
func languageOf(r *http.Request) words.Language {
	if k, err := r.Cookie(languageCookie); err == nil {
		if l, ok := words.Parse(k.Value); ok {
			return l
		}
	}
	return words.Preferred(r.Header.Get("Accept-Language"))
}

// client asks the API with a token. The host is never looked up: API answers.
func (c *console) client(token string) *client.Client {
	api, err := client.New("http://xtimer", client.WithToken(token), client.WithHTTPClient(&http.Client{Transport: impatient{c.cfg.API}}))
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return api
}

// impatient keeps what the API says of waiting from the client, which would wait
// as a program should: who looks at a page wants to read now that a tier is away.
type impatient struct{ http.RoundTripper }

// RoundTrip is http.RoundTripper's.
func (i impatient) RoundTrip(r *http.Request) (*http.Response, error) {
	p, err := i.RoundTripper.RoundTrip(r)
	if err == nil {
		p.Header.Del("Retry-After")
	}
	return p, err
}

// admit asks the API what the visitor may do, and sees that a change comes from
// a page of ours.
func (v *visit) admit(private bool) error {
	var problem *client.Error
	switch g, err := v.api.Grant(v.ctx); {
	case err == nil:
		v.grant = *g
	case !private:
	case !errors.As(err, &problem) || problem.Status != http.StatusUnauthorized:
		return err
	case v.r.Method != http.MethodGet || v.r.URL.Path == "/":
		return redirect("/sign-in")
	default:
		return redirect("/sign-in?to=" + url.QueryEscape(v.r.URL.RequestURI()))
	}
	if v.r.Method == http.MethodGet || v.r.Method == http.MethodHead {
		return nil
	}
	if err := v.r.ParseForm(); err != nil {
		return &fault{http.StatusBadRequest, "The form is invalid."}
	}
	if !hmac.Equal([]byte(v.r.PostForm.Get("csrf")), []byte(v.CSRF())) {
		return &fault{http.StatusForbidden, "This form is out of date. Load the page again."}
	}
	return nil
}

// CSRF is the token of the forms on the visitor's pages.
func (v *visit) CSRF() string {
	m := hmac.New(sha256.New, v.c.key[:])
	m.Write([]byte(v.session))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// SignedIn, MayWrite and MayAdmin say what to offer. That something is not
// offered protects nothing: the API does.
func (v *visit) SignedIn() bool { return v.session != "" }

// MayWrite reports whether timers and tasks may be changed.
func (v *visit) MayWrite() bool { return v.grant.Role == "write" || v.grant.Role == "admin" }

// MayAdmin reports whether the service itself may be administered.
func (v *visit) MayAdmin() bool { return v.grant.Role == "admin" && v.grant.App == "*" }

// NoRedis reports whether the warm tier is the memory of the process.
func (v *visit) NoRedis() bool { return v.c.cfg.NoRedis }

// AllApps reports whether the figures are those of the whole service.
func (v *visit) AllApps() bool { return v.grant.App == "*" }

// Grant is what the visitor may do.
func (v *visit) Grant() client.Grant { return v.grant }

// Path is where the visitor is, for forms that come back.
func (v *visit) Path() string { return withQuery(v.r.URL, "note", "") }

// noteNoneSelected marks a page that a form sent the visitor back to.
const noteNoneSelected = "none_selected"

// Note is what a form that did nothing has to say on the page that it came from.
func (v *visit) Note() string {
	if v.query("note") == noteNoneSelected {
		return v.T("Nothing is selected. Select at least one row, then choose the action again.")
	}
	return ""
}

// noneSelected sends the visitor back to a page, which says that nothing was selected.
func noneSelected(back string) error {
	u, err := url.Parse(back)
	if err != nil {
		return redirect("/")
	}
	return redirect(withQuery(u, "note", noteNoneSelected))
}

// In reports whether a part of the console is shown, for the navigation.
func (v *visit) In(part string) bool {
	p := v.r.URL.Path
	return p == part || part != "/" && strings.HasPrefix(p, part+"/")
}

// query is a parameter of the page, without the white space around it.
func (v *visit) query(name string) string { return strings.TrimSpace(v.r.URL.Query().Get(name)) }

// inside is a path of this server, or "/": a form must not send anybody elsewhere.
func inside(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") {
		return "/"
	}
	return to
}

package console

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"xtimer/httpapi/client"
)

// saver fills forms in, with the token of one page for all of them.
type saver struct {
	visitor
	csrf string
}

func newSaver(f *testing.F) *saver {
	v := serve(f).visitor()
	return &saver{*v, v.csrf()}
}

// in is the saver of one input.
func (s *saver) in(t *testing.T) *saver {
	n := *s.node
	n.t = t
	return &saver{visitor{&n, s.http}, s.csrf}
}

// send posts a form, and fails unless the answer is one of those.
func (s *saver) send(path string, q url.Values, want ...int) answer {
	s.t.Helper()
	q.Set("csrf", s.csrf)
	a := s.do(http.MethodPost, path, q.Encode(), "Sec-Fetch-Site", "same-origin")
	if !slices.Contains(want, a.status) {
		s.t.Fatalf("POST %s %s: %d %s", path, q.Encode(), a.status, a.body)
	}
	return a
}

// newline is any that a browser sends as two bytes.
var newline = regexp.MustCompile("\r\n|\r|\n")

// saved saves the form of a timer as it is shown, which changes nothing, and
// deletes the timer.
func (s *saver) saved(id string) {
	s.t.Helper()
	was, err := s.api.Get(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	f := formOf(was.Definition)
	f.Version = text(was.Version)
	q := f.values()
	for name := range q {
		q.Set(name, newline.ReplaceAllString(q.Get(name), "\r\n"))
	}
	s.send("/timers/"+id+"/edit", q, http.StatusSeeOther)
	if is, err := s.api.Get(s.t.Context(), id); err != nil || is.Version != was.Version {
		s.t.Fatalf("saving it as it is shown made another, %v:\n%s\n%s", err, text(was.Definition), text(is.Definition))
	}
	if _, err := s.api.Delete(s.t.Context(), id); err != nil {
		s.t.Fatal(err)
	}
}

// FuzzForm: whatever stands in a form, it is taken or shown again with what is
// wrong.
func FuzzForm(f *testing.F) {
	for _, query := range []string{
		"kind=cron&when=0+9+*+*+MON-FRI&schedule.time_zone=Asia%2FShanghai&body_kind=body&body=%7B%22a%22%3A1%7D&priority=7&labels=team%3Da",
		"kind=delay&when=1h&callback.headers=X-A%3A+1%3A2%0D%0AX-B%3A&body_kind=body_text&body=%0D%0Aa%0D%0Ab%0D%0A&retry.jitter=0.3",
		"kind=every&when=90000&priority=true", "kind=every&when=1h&retry.multiplier=%7B%7D", "kind=every&when=1h&retry.jitter=null&body_kind=body&body=%7B",
		"kind=schedule&when=1&app=%FF&schedule.max_runs=1e400&misfire.window=%22&labels=%3Da",
	} {
		f.Add("app=shop&name=full&callback.url=http%3A%2F%2Fx%2F&" + query)
	}
	all := newSaver(f)
	f.Fuzz(func(t *testing.T, query string) {
		s := all.in(t)
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		s.send("/timers/preview", q, 200)
		a := s.send("/timers/new", q, http.StatusSeeOther, http.StatusUnprocessableEntity)
		standing, err := s.api.Create(t.Context(), client.Definition{
			App: "shop", Name: "standing", Schedule: client.Schedule{Every: time.Hour}, Callback: client.Callback{URL: "http://x/"},
		})
		if err != nil {
			t.Fatal(err)
		}
		q.Set("version", text(standing.Timer.Version))
		s.send("/timers/"+standing.Timer.ID+"/edit", q, http.StatusSeeOther, http.StatusUnprocessableEntity)
		s.saved(standing.Timer.ID)
		if a.status == http.StatusSeeOther {
			id, _ := url.PathUnescape(strings.TrimPrefix(a.header.Get("Location"), "/timers/"))
			s.saved(id)
		}
	})
}

// FuzzDefinition: the form of any timer says the same timer.
func FuzzDefinition(f *testing.F) {
	f.Add(fullDefinition)
	f.Add(`{"app":"a","name":"n","schedule":{"delay":"1h"},"callback":{"url":"http://h/","headers":{"X-A":" b:c"},"body_text":"\na\r\nb\r\n"},"labels":{"k":" v=w ","team":""}}`)
	f.Add(`{"app":"a","name":"n","schedule":{"cron":" 0 9 * * *"},"callback":{"url":"http://h/","body_base64":""}}`)
	f.Add(`{"app":"a","name":"n","schedule":{"every":"1h"},"callback":{"url":"http://h/","body":"text"},"priority":0,"retry":{"jitter":0}}`)
	f.Add(`{"app":"a","name":"n","schedule":{"every":"1h"},"callback":{"url":"http://h/","body":null,"body_text":""}}`)
	all := newSaver(f)
	f.Fuzz(func(t *testing.T, doc string) {
		s := all.in(t)
		if a := s.do(http.MethodPost, "/v1/timers", doc, "Content-Type", "application/json"); a.status == http.StatusCreated {
			s.saved(strings.TrimPrefix(a.header.Get("Location"), "/v1/timers/"))
		}
	})
}

package console

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"runtime"
	"strconv"
	"strings"
	"time"

	"xtimer/httpapi/client"
	"xtimer/httpapi/console/words"
)

//go:embed pages/*.html
var pageFiles embed.FS

// templates has one set a page: its file, in the layout, with the parts.
var templates = func() map[string]*template.Template {
	shared := template.Must(template.New("").Funcs(functions).ParseFS(pageFiles, "pages/layout.html", "pages/parts.html"))
	files, err := pageFiles.ReadDir("pages")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	sets := make(map[string]*template.Template)
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".html")
		if name == "layout" || name == "parts" {
			continue
		}
		sets[name] = template.Must(template.Must(shared.Clone()).ParseFS(pageFiles, "pages/"+f.Name()))
	}
	return sets
}()

var functions = template.FuncMap{
	"asset": assetURL,
	"json":  func(v any) (string, error) { b, err := json.Marshal(v); return string(b), err },
	"iso":   func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") },
	"count": words.Grouped[int64],
	"num":   words.Grouped[int],
	"int64": func(n int) int64 { return int64(n) },
	"ms":    millis,
	"us":    micros,
	"late":  lateness,
	"bytes": bytesOf,
	"with2": func(kv ...any) (map[string]any, error) {
		m := make(map[string]any, len(kv)/2)
		for i := 0; i+1 < len(kv); i += 2 {
			k, ok := kv[i].(string)
			if !ok {
				return nil, fmt.Errorf("%v is no name", kv[i])
			}
			m[k] = kv[i+1]
		}
		return m, nil
	},
}

// shown is what a template gets: the visit, and what the page found.
type shown struct {
	*visit
	Title string
	D     any
}

// show renders a page, whole before its first byte is sent.
func (v *visit) show(name, title string, data any) error {
	var b rendering
	if err := templates[name].ExecuteTemplate(&b, "layout", shown{v, title, data}); err != nil {
		return fmt.Errorf("cannot render %s: %w", name, err)
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	h.Add("Vary", "Cookie, Accept-Language")
	if v.status != 0 {
		v.w.WriteHeader(v.status)
	}
	_, err := v.w.Write(b.Bytes())
	if err != nil {
		v.c.log.Debug("a visitor went away", "err", err)
	}
	return nil
}

// rendering is a page that grows. It lets what is due go first after every 2 KiB:
// a page of a hundred rows would keep a core for 10 ms and more.
type rendering struct {
	bytes.Buffer
	paused int // at this length
}

func (r *rendering) Write(b []byte) (int, error) {
	if r.Len()-r.paused >= 2<<10 {
		r.paused = r.Len()
		runtime.Gosched()
	}
	return r.Buffer.Write(b)
}

// millis writes ms as a person reads them.
func millis(ms float64) string {
	switch d := time.Duration(ms * float64(time.Millisecond)); {
	case ms < 0:
		return "–"
	case ms < 1:
		return strconv.FormatFloat(ms, 'f', 3, 64) + " ms"
	case ms < 100:
		return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
	case ms < 1000:
		return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + " s"
	case d < 24*time.Hour:
		return d.Truncate(time.Second).String()
	default:
		return fmt.Sprintf("%dd %dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	}
}

// micros writes µs, and what is long as ms.
func micros(us int64) string {
	if us < 10_000 {
		return words.Grouped(us) + " µs"
	}
	return millis(float64(us) / 1000)
}

func bytesOf(n int64) string {
	if n < 1<<20 {
		return strconv.FormatInt(n>>10, 10) + " KiB"
	}
	return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MiB"
}

// Ago says how far away an instant is, before or after now.
func (v *visit) Ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	d := t.Sub(v.Now)
	if d >= 0 {
		return v.T("in %s", v.brief(d))
	}
	return v.T("%s ago", v.brief(-d))
}

// brief is about how long a duration is.
func (v *visit) brief(d time.Duration) string {
	n, unit := strconv.Itoa(int(d.Hours()/24)), "d"
	switch {
	case d < time.Second:
		n, unit = strconv.FormatInt(d.Milliseconds(), 10), "ms"
	case d < 100*time.Second:
		n, unit = strconv.FormatFloat(d.Seconds(), 'f', 1, 64), "s"
	case d < 100*time.Minute:
		n, unit = strconv.Itoa(int(d.Minutes())), "min"
	case d < 48*time.Hour:
		n, unit = strconv.Itoa(int(d.Hours())), "h"
	}
	return n + " " + v.Word(unit)
}

// About is about how long a duration of the API is.
func (v *visit) About(d client.Duration) string { return v.brief(time.Duration(d)) }

// Each is a list for a template to range over.
func (v *visit) Each(words ...string) []string { return words }

// Seconds in ms, for ms.
func (v *visit) Seconds(s float64) float64 { return s * 1000 }

// Answer says what the last attempt of a task was answered.
func (v *visit) Answer(t client.Task) string {
	if len(t.Attempts) == 0 {
		return ""
	}
	a := t.Attempts[len(t.Attempts)-1]
	if a.Code != 0 && (a.ErrorClass == "" || a.ErrorClass == "status") {
		return strconv.Itoa(a.Code)
	}
	return strings.TrimSpace(v.Word(a.ErrorClass) + " " + a.Secret)
}

// Failure is how tasks failed, as the API says it: "status 503", "timeout".
func (v *visit) Failure(how string) string {
	word, code, _ := strings.Cut(how, " ")
	return strings.TrimSpace(v.Word(word) + " " + code)
}

// Sentence says what a schedule means.
func (v *visit) Sentence(p client.Preview) string { return v.Language.Sentence(&p, v.Stamp) }

// Warning says what may surprise about a schedule.
func (v *visit) Warning(w client.Warning) string { return v.Language.Warning(w, v.Stamp) }

// Schedule is a schedule in short.
func (v *visit) Schedule(s client.Schedule) string {
	switch {
	case s.Cron != "" && s.TimeZone != "":
		return s.Cron + " " + s.TimeZone
	case s.Cron != "":
		return s.Cron
	case s.Every != 0:
		return v.Word("every") + " " + s.Every.String()
	case s.Delay != nil:
		return v.Word("delay") + " " + s.Delay.String()
	default:
		return v.Word("at") + " " + v.Stamp(s.At)
	}
}

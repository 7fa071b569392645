package console

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"xtimer/httpapi/client"
)

// header is one header of a request.
type header struct{ Name, Value string }

// sentHeaders are the headers of an attempt, except a signature: the timer's own first,
// then those that every call has.
func sentHeaders(timer *client.Timer, t *client.Task, attempt int, kind string) []header {
	var all []header
	typed := false
	own := hidden(timer.Callback.Headers)
	for _, name := range slices.Sorted(maps.Keys(own)) {
		all = append(all, header{name, own[name]})
		typed = typed || strings.EqualFold(name, "Content-Type")
	}
	for _, name := range slices.Sorted(maps.Keys(timer.Callback.SecretHeaders)) {
		all = append(all, header{name, dots})
	}
	if kind != "" && !typed {
		all = append(all, header{"Content-Type", kind})
	}
	return append(
		all,
		header{"Idempotency-Key", t.Key}, header{"X-Xtimer-Task", t.Key}, header{"X-Xtimer-Timer", t.TimerID},
		header{"X-Xtimer-App", url.PathEscape(timer.App)}, header{"X-Xtimer-Name", url.PathEscape(timer.Name)},
		header{"X-Xtimer-Due", t.Due.UTC().Format("2006-01-02T15:04:05.000Z")}, header{"X-Xtimer-Attempt", strconv.Itoa(attempt)},
	)
}

// curl is a command that makes a request.
func curl(method, to string, headers []header, body string) string {
	var b strings.Builder
	b.WriteString("curl -X " + quoteShell(method) + " " + quoteShell(to))
	if strings.ContainsAny(to, "[]{}") {
		b.WriteString(" --globoff") // else curl makes a request for each of several URLs
	}
	for _, h := range headers {
		line := h.Name + ": " + h.Value
		if strings.Trim(h.Value, " \t") == "" {
			line = h.Name + ";" // else curl leaves the header out
		}
		b.WriteString(" \\\n  -H " + quoteShell(line))
	}
	if body != "" {
		b.WriteString(" \\\n  --data-raw " + quoteShell(body)) // "@name" is a text, and no file
	}
	return b.String()
}

// Curl is a command that creates the timer, or puts its definition in force again.
func (v *visit) Curl(d *timerData) string {
	def := d.Timer.Definition
	def.Callback.Headers = hidden(def.Callback.Headers)
	b, err := json.Marshal(def)
	if err != nil {
		return ""
	}
	scheme := "http"
	if v.r.TLS != nil || v.r.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	method, path := http.MethodPost, "/v1/timers"
	if d.Timer.Name != "" {
		method, path = http.MethodPut, "/v1/apps/"+url.PathEscape(d.Timer.App)+"/timers/"+url.PathEscape(d.Timer.Name)
	}
	text := curl(method, scheme+"://"+v.r.Host+path, []header{{"Content-Type", "application/json"}}, string(b))
	if v.SignedIn() { // the variable is for the shell to fill in, so its quotes are double
		text = strings.Replace(text, " \\\n", " \\\n  -H \"Authorization: Bearer $XTIMER_TOKEN\" \\\n", 1)
	}
	return text
}

// quoteShell makes a text one word of a POSIX shell.
func quoteShell(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// secretLines are the headers that are secrets, one a line, as withSecrets reads them.
func secretLines(secrets map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		b.WriteString(name + `: {"secret":"` + secrets[name] + "\"}\n")
	}
	return b.String()
}

// withSecrets makes objects of the headers that are written as one, {"secret":"NAME"}, if the
// input is that of headers.
func withSecrets(input string, headers map[string]any) map[string]any {
	for name, v := range headers {
		var secret struct {
			Secret string `json:"secret"`
		}
		s, _ := v.(string)
		if input == headersInput && strings.HasPrefix(s, `{"secret":`) && json.Unmarshal([]byte(s), &secret) == nil && secret.Secret != "" {
			headers[name] = map[string]any{"secret": secret.Secret}
		}
	}
	return headers
}

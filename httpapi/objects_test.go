package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"xtimer/engine"
	"xtimer/httpapi/access"
)

// A secret is set, changed, listed and deleted under its version; no answer has its value.
func TestSecrets(t *testing.T) {
	n := newNode(t)
	const one = "/v1/apps/shop/secrets/api.token"
	put := func(value string, status int, headers ...string) answer {
		t.Helper()
		return n.do("PUT", one, fmt.Sprintf(`{"value":%q}`, value), headers...).want(status)
	}
	all := []answer{
		n.do("GET", one, "").want(404),
		put("hunter2", 201),
		put("hunter2", 200),
		put("hunter3", 200),
		put("hunter4", 412, "If-Match", `"1"`),
		put("hunter4", 412, "If-None-Match", "*"),
		put("hunter4", 200, "If-Match", `"2"`),
		n.do("PUT", one+"?dry_run=true", `{"value":"hunter5"}`).want(200),
		n.do("GET", one, "").want(200),
		n.do("GET", one, "", "If-None-Match", `"3"`).want(304),
		n.do("GET", "/v1/apps/shop/secrets", "").want(200),
	}
	for i, want := range map[int]string{1: "created", 2: "unchanged", 3: "updated", 6: "updated", 7: "updated"} {
		if got := all[i].str("result"); got != want {
			t.Errorf("answer %d: %s, want %s", i, got, want)
		}
	}
	if v := all[8].get("version"); v != 3.0 || all[8].header["Etag"] != `"3"` {
		t.Errorf("%s", all[8].body)
	}
	if got := all[10].str("secrets", 0, "name"); got != "api.token" {
		t.Error(all[10].body)
	}
	for _, a := range all {
		if strings.Contains(a.body, "hunter") {
			t.Errorf("an answer has the value: %s", a.body)
		}
	}
	for body, code := range map[string]string{
		`{}`: "out_of_range", `{"value":""}`: "out_of_range", `{"value":1}`: "wrong_type", `{"value":"a","more":1}`: "unknown_field",
		`{"value":"` + strings.Repeat("a", 4097) + `"}`: "out_of_range",
	} {
		if a := n.do("PUT", one, body); a.str("code") != code {
			t.Errorf("%.40s: %s", body, a.body)
		}
	}
	n.do("PUT", "/v1/apps/shop/secrets/a%20b", `{"value":"a"}`).want(422)
	n.do("PUT", "/v1/apps/sh%20op/secrets/a", `{"value":"a"}`).want(422)
	n.do("PUT", "/v1/apps/shop/secrets/a*", `{"value":"a"}`).want(422)
	n.do("DELETE", one, "", "If-Match", `"2"`).want(412)
	n.do("DELETE", one, "").want(200)
	if a := n.do("DELETE", one, "").want(404); a.str("detail") != "secret shop/api.token not found" {
		t.Error(a.body)
	}
}

// Lists go on where the page before ended, and not in another app.
func TestSecretsPages(t *testing.T) {
	n := newNode(t)
	var want []string
	for i := range 5 {
		want = append(want, fmt.Sprint("s", i))
		n.do("PUT", fmt.Sprint("/v1/apps/shop/secrets/s", i), `{"value":"v"}`).want(201)
	}
	var got []string
	cursor := ""
	for {
		a := n.do("GET", "/v1/apps/shop/secrets?limit=2&cursor="+cursor, "").want(200)
		list, _ := a.get("secrets").([]any)
		for i := range list {
			got = append(got, a.str("secrets", i, "name"))
		}
		if cursor = a.str("next_cursor"); cursor == "" {
			break
		}
		n.do("GET", "/v1/apps/other/secrets?cursor="+cursor, "").want(400)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// Tokens of an app reach its secrets; what holds for all apps only an admin of all changes.
func TestSecretsAccess(t *testing.T) {
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Tokens: []access.Token{
		{App: "shop", Role: access.RoleWrite, Token: "shop-write-token-0"},
		{App: "shop", Role: access.RoleRead, Token: "shop-read-token-00"},
		{App: "*", Role: access.RoleWrite, Token: "all-write-token-00"},
		{App: "*", Role: access.RoleAdmin, Token: "all-admin-token-00"},
	}})
	for _, x := range []struct {
		token, method, app string
		status             int
	}{
		{"shop-write-token-0", "PUT", "shop", 201},
		{"shop-read-token-00", "PUT", "shop", 403},
		{"shop-read-token-00", "GET", "shop", 200},
		{"shop-write-token-0", "GET", "other", 403},
		{"shop-write-token-0", "PUT", "*", 403},
		{"all-write-token-00", "PUT", "*", 403},
		{"all-admin-token-00", "PUT", "*", 201},
		{"all-write-token-00", "GET", "*", 200},
		{"shop-write-token-0", "GET", "*", 403},
	} {
		n.token = x.token
		body := ""
		if x.method == "PUT" {
			body = `{"value":"v"}`
		}
		if a := n.do(x.method, "/v1/apps/"+x.app+"/secrets/a", body); a.status != x.status {
			t.Errorf("%+v: %d %s", x, a.status, a.body)
		}
	}
}

// A header that names a secret is stored, answered, patched and called as such.
func TestSecretHeader(t *testing.T) {
	called := make(chan []engine.Header, 1)
	n := serve(t, newEngine(t, func(c *engine.Call) engine.Outcome {
		called <- c.Timer.Callback.Headers
		return engine.Outcome{Code: 200}
	}, nil), ServerConfig{})
	def := `{"schedule":{"delay":"1h"},"callback":{"url":"http://x/","headers":{"A":"plain","B":{"secret":"s:1"}}}}`
	id := n.do("PUT", "/v1/apps/a/timers/n", def).want(201).str("timer", "id")
	n.do("PUT", "/v1/apps/a/timers/n", def).want(200)
	if a := n.do("PUT", "/v1/apps/a/timers/n?dry_run=true", def).want(200); a.str("warnings", 0, "code") != "secret_missing" || a.str("warnings", 0, "secret") != "s:1" {
		t.Error(a.body)
	}
	n.do("PUT", "/v1/apps/a/secrets/s:1", `{"value":"v"}`).want(201)
	if a := n.do("PUT", "/v1/apps/a/timers/n?dry_run=true", def).want(200); a.get("warnings") != nil {
		t.Error(a.body)
	}
	if a := n.do("GET", "/v1/timers/"+id, "").want(200); a.str("callback", "headers", "B", "secret") != "s:1" || a.str("callback", "headers", "A") != "plain" {
		t.Error(a.body)
	}
	a := n.do("PATCH", "/v1/timers/"+id, `{"callback":{"headers":{"A":{"secret":"s2"},"B":"plain"}}}`).want(200)
	if a.str("callback", "headers", "A", "secret") != "s2" || a.str("callback", "headers", "B") != "plain" {
		t.Error(a.body)
	}
	n.do("POST", "/v1/timers/"+id+"/run", "").want(202)
	if got, want := <-called, []engine.Header{{Name: "A", Secret: "s2"}, {Name: "B", Value: "plain"}}; !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	for _, bad := range []string{`{"secret":""}`, `{"secret":1}`, `{}`, `{"secret":"a","x":1}`, `{"secret":"a b"}`, `[]`} {
		if a := n.do("PUT", "/v1/apps/a/timers/m", `{"schedule":{"delay":"1h"},"callback":{"url":"http://x/","headers":{"B":`+bad+`}}}`); a.status/100 != 4 {
			t.Errorf("%s: %d %s", bad, a.status, a.body)
		}
	}
}

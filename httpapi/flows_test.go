package httpapi

import (
	"strings"
	"testing"
)

// A flow is limited, paused and resumed; its pause stays when its limit changes.
func TestFlows(t *testing.T) {
	n := newNode(t)
	const one = "/v1/apps/shop/flows/stripe:eu"
	n.do("PUT", one, `{"rate":10}`).want(201)
	if a := n.do("PUT", one, `{"rate":10,"per":"1s","burst":1}`).want(200); a.str("result") != "unchanged" {
		t.Error(a.body)
	}
	n.do("POST", one+"/pause", `{"reason":"why","until":"2099-01-01T00:00:00Z"}`).want(200)
	n.do("PUT", one, `{"rate":20,"per":"1m","burst":5,"concurrency":3,"hold":"task","cooldown":true,"breaker":{"of":10}}`).want(200)
	a := n.do("GET", one, "").want(200)
	for _, want := range []string{`"rate":20,"per":"1m","burst":5,"concurrency":3,"hold":"task","cooldown":true`, `"breaker":{"share":0.5,"of":10`, `"paused":true,"paused_until":"2099-01-01T00:00:00.000Z","reason":"why"`} {
		if !strings.Contains(a.body, want) {
			t.Errorf("%s is not in %s", want, a.body)
		}
	}
	if a := n.do("POST", one+"/resume", "").want(200); strings.Contains(a.body, "paused") {
		t.Error(a.body)
	}
	n.do("POST", one+"/cooldown", `{"until":"2099-01-01T00:00:00Z"}`).want(200)
	n.do("POST", one+"/cooldown", "").want(422)
	n.do("PUT", "/v1/apps/shop/flows/user-*", `{"concurrency":1}`).want(201)
	n.do("PUT", "/v1/apps/shop/flows/z%2Fa", `{"concurrency":1}`).want(201)
	n.do("PUT", "/v1/apps/shop/flows/user-*-x", `{"concurrency":1}`).want(422)
	if a := n.do("GET", "/v1/apps/shop/flows", "").want(200); a.str("flows", 1, "name") != "user-*" {
		t.Error(a.body)
	}
	for body, code := range map[string]string{
		`{}`: "nothing_limited", `{"rate":1,"burst":2}`: "burst_over_rate", `{"rate":1,"per":"1ms"}`: "out_of_range", `{"rate":0}`: "out_of_range",
		`{"rate":1000001}`: "out_of_range", `{"rate":1,"more":1}`: "unknown_field", `{"rate":1,"hold":"x"}`: "unknown_value",
	} {
		if a := n.do("PUT", one, body); a.str("code") != code {
			t.Errorf("%s: %s", body, a.body)
		}
	}
	n.do("DELETE", one, "").want(200)
	n.do("POST", one+"/resume", "").want(404)
	n.do("POST", "/v1/apps/shop/resume", "").want(404)
	if a := n.do("POST", "/v1/apps/shop/pause", `{"reason":"why"}`).want(200); a.get("paused") != true || a.str("reason") != "why" {
		t.Error(a.body)
	}
	if a := n.do("POST", "/v1/apps/shop/resume", "").want(200); a.get("paused") != false {
		t.Error(a.body)
	}
}

package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

// verified is the answer's last line; findings are how many come before it.
func verified(t *testing.T, a answer) (findings int, last map[string]any) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(a.want(200).body), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatalf("%v in %q", err, a.body)
	}
	for _, l := range lines[:len(lines)-1] {
		var f map[string]any
		if l == "" {
			continue
		}
		if err := json.Unmarshal([]byte(l), &f); err != nil || f["finding"] == nil || f["due"] == nil {
			t.Fatalf("%v in %q", err, l)
		}
		findings++
	}
	return findings, last
}

func TestVerify(t *testing.T) {
	n := newNode(t)
	n.s.cfg.Heartbeat = time.Millisecond
	path := fmt.Sprintf("/v1/admin/verify?from=%d", time.Now().Add(-time.Second).UnixMilli())
	for _, app := range []string{"a", "b"} {
		n.do("POST", "/v1/timers", `{"app":"`+app+`","name":"often","schedule":{"every":"20ms"},"callback":{"url":"http://x/"}}`).want(201)
	}
	until(t, func() bool {
		_, v := verified(t, n.do("GET", path, ""))
		if v["verdict"] != "proven" {
			t.Fatal(v)
		}
		return v["timers"] == 2.0 && v["dues"].(float64) >= 10 && v["records"].(float64) >= 10
	})
	if _, v := verified(t, n.do("GET", path+"&app=b", "")); v["timers"] != 1.0 || v["verdict"] != "proven" {
		t.Error(v)
	}
	findings, v := verified(t, n.do("GET", path+"&late=1ns", ""))
	if found, _ := v["found"].(map[string]any); v["verdict"] != "failed" || findings < 10 || found["late"] != float64(findings) {
		t.Errorf("%d findings, %v", findings, v)
	}
}

func TestVerifyInput(t *testing.T) {
	n := newNode(t)
	now := time.Now().UnixMilli()
	for _, c := range []struct {
		query  string
		status int
		code   string
	}{
		{"", 400, "missing"},
		{"from=yesterday", 400, "wrong_type"},
		{"from=1000000000000", 422, "older_than_history"},
		{fmt.Sprintf("from=%d&to=%d", now-1000, now-1000), 422, "out_of_range"},
		{fmt.Sprintf("from=%d&late=soon", now-1000), 400, "wrong_type"},
		{fmt.Sprintf("from=%d&late=-1s", now-1000), 400, "wrong_type"},
	} {
		if a := n.do("GET", "/v1/admin/verify?"+c.query, ""); a.status != c.status || a.str("code") != c.code {
			t.Errorf("%s: %d %s, want %d %s", c.query, a.status, a.body, c.status, c.code)
		}
	}
}

// TestVerifyOfAnApp: an app's admin verifies its own timers and no others.
func TestVerifyOfAnApp(t *testing.T) {
	n := serve(t, newEngine(t, answers(200), nil), ServerConfig{Tokens: tokens()})
	path := fmt.Sprintf("/v1/admin/verify?from=%d", time.Now().Add(-time.Second).UnixMilli())
	n.token = "root"
	n.do("POST", "/v1/timers", hourly("b", "n", "")).want(201)
	if _, v := verified(t, n.do("GET", path, "")); v["timers"] != 1.0 {
		t.Error(v)
	}
	n.token = "a-admin"
	if _, v := verified(t, n.do("GET", path, "")); v["timers"] != 0.0 {
		t.Error(v)
	}
	n.do("GET", path+"&app=b", "").want(403)
	n.token = "a-write"
	n.do("GET", path, "").want(403)
}

package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"xtimer/tier/servertest"
)

// TestMySQLAway: at the start /readyz names what is waited for; a MySQL that hangs
// later has creates and lookups answered within five seconds, with when to repeat them.
func TestMySQLAway(t *testing.T) {
	t.Parallel()
	mysql := servertest.MariaDB(t)
	dsn := mysql.DSN("x")
	mysql.Stop()
	s := starts(t, "--data-dir", t.TempDir(), "--mysql-dsn", dsn)
	code, body := s.get("/readyz")
	for deadline := time.Now().Add(time.Minute); code != http.StatusServiceUnavailable || !strings.Contains(body, "it waits for MySQL"); code, body = s.get("/readyz") {
		if time.Now().After(deadline) {
			t.Fatalf("MySQL is away, /readyz is %d %s", code, body)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !strings.Contains(body, `"cold":false`) {
		t.Errorf("/readyz says that it is there: %s", body)
	}
	mysql.Start()
	s.awaitReady()

	mysql.Pause()
	defer mysql.Resume()
	const definition = `{"app":"a","name":"n","schedule":{"delay":"1h"},"callback":{"url":"http://127.0.0.1:9/"}}`
	for method, path := range map[string]string{
		http.MethodPost: "/v1/timers", http.MethodPut: "/v1/apps/a/timers/n", http.MethodGet: "/v1/apps/a/timers/n",
	} {
		began := time.Now()
		q, err := http.NewRequest(method, s.url+path, strings.NewReader(definition))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		took := time.Since(began) // 5 s are promised, on a machine that has the time
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(b), `"tier_unavailable"`) || !strings.Contains(string(b), "MySQL") || took > 9*time.Second {
			t.Errorf("%s %s over a MySQL that hangs: %d after %v, Retry-After %q: %s", method, path, resp.StatusCode, took, resp.Header.Get("Retry-After"), b)
		}
	}
}

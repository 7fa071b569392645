package settings

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/golden"
)

// loaded are the settings that result from a command line, an environment and a file.
func loaded(t *testing.T, args []string, env map[string]string, file string) (*Settings, error) {
	t.Helper()
	if file != "" {
		name := filepath.Join(t.TempDir(), "xtimer.yaml")
		if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", name)
	}
	s := Default()
	cmd := &cobra.Command{}
	AddFlags(cmd, s)
	if err := cmd.ParseFlags(args); err != nil {
		return nil, err
	}
	return s, s.Load(cmd, func(k string) string { return env[k] })
}

func TestPrecedence(t *testing.T) {
	const file = "drain: 1m\nhistory_retention: 3d\nnode: from-file\npprof: true\negress_deny: [10.0.0.0/8, 192.0.2.7]\n"
	env := map[string]string{"XTIMER_DRAIN": "2m", "XTIMER_NODE": "from-env", "XTIMER_BACKUP_DIR": ""}
	s, err := loaded(t, []string{"--drain", "3m", "--egress-allow", "127.0.0.1", "--egress-allow", "10.1.0.0/16,::1"}, env, file)
	if err != nil {
		t.Fatal(err)
	}
	f := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s = %v, want %v", what, got, want)
		}
	}
	f("drain", s.Drain, 3*time.Minute)
	f("node", s.Node, "from-env")
	f("history_retention", s.HistoryRetention, 72*time.Hour)
	f("finished_retention", s.FinishedRetention, 168*time.Hour)
	f("pprof", s.Pprof, true)
	f("egress_deny", (*cidrsValue)(&s.EgressDeny).String(), "10.0.0.0/8,192.0.2.7/32")
	f("egress_allow", (*cidrsValue)(&s.EgressAllow).String(), "127.0.0.1/32,10.1.0.0/16,::1/128")
	f("where drain is from", s.whence("drain"), "flag --drain")
	f("where node is from", s.whence("node"), "environment XTIMER_NODE")
	f("where the listen address is from", s.whence("listen"), "default")
	if w := s.whence("history-retention"); !strings.HasSuffix(w, "xtimer.yaml:2") {
		t.Errorf("where history_retention is from = %q", w)
	}
}

func TestRefused(t *testing.T) {
	f := func(want string, args []string, env map[string]string, file string) {
		t.Helper()
		_, err := loaded(t, args, env, file)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want …%s…", err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("a secret is shown: %v", err)
		}
	}
	file := func(text, want string) { t.Helper(); f(want, nil, nil, text) }
	env := func(name, value, want string) { t.Helper(); f(want, nil, map[string]string{name: value}, "") }

	file("drian: 1s\n", "xtimer.yaml:1: drian: unknown key; known are apps, listen, data_dir")
	file("apps: {billing: {tokens: [{sha: x, role: read}]}}\n", "apps.billing.tokens[0].sha: unknown key; known are name, sha256, role")
	file("apps:\n  billing:\n    token: x\n", "xtimer.yaml:3: apps.billing.token: unknown key")
	file("apps: {billing: {tokens: [{role: read}]}}\n", "apps.billing.tokens[0]: a token must have a sha256 and a role")
	file("apps: {billing: {tokens: [{sha256: abc, role: read}]}}\n", "apps.billing.tokens[0].sha256: is not a SHA-256 in hex")
	file("apps: {billing: {webhook_secrets: [hunter2]}}\n", "apps.billing.webhook_secrets[0]: a webhook secret must begin with whsec_")
	file("apps: {\"*\": {webhook_secrets: [whsec_hunter2]}}\n", "apps.*.webhook_secrets: must be set for each app")
	file("apps: {a/b: {webhook_secrets: [whsec_hunter2]}}\n", "xtimer.yaml:1: apps.a/b: the name of an app must be 1 to 64 letters, digits or characters from ._:-; * means all apps")
	file("apps: {..: {webhook_secrets: [whsec_hunter2]}}\n", "the name of an app must not be")
	file("apps: [a]\n", "apps: has to be a mapping")
	file("drain: [1s]\n", "drain: has to be a plain value")
	file("egress_deny: [10.1.2.3/8]\n", "did you mean 10.0.0.0/8?")
	file("drain: 1s\ndrain: 2s\n", "xtimer.yaml:2: drain: is there twice")
	file("pprof: maybe\n", `pprof: "maybe" is not true or false`)
	file("- a\n", "the file: has to be a mapping")
	file("a: 1\n---\nb: 2\n", "exactly one YAML document")
	file("drain: {\n", "xtimer.yaml: yaml:")
	env("XTIMER_DRAIN", "soon", `XTIMER_DRAIN: "soon" is not a duration such as 250ms, 30m or 7d`)
	env("XTIMER_DRAIN", "10ms", "--drain must be at least 1s")
	env("XTIMER_TOKENS", "billing:hunter2", "XTIMER_TOKENS: item 1 does not have the form app:role:token")
	env("XTIMER_TOKENS", "a:read:t,b:owner:hunter2", "XTIMER_TOKENS: item 2: the role (the second part) must be admin, write or read")
	env("XTIMER_TOKENS", "a:read:t,hunter2/x:read:b", "XTIMER_TOKENS: item 2: the name of an app must be 1 to 64 letters, digits or characters from ._:-; * means all apps")
	env("XTIMER_CONFIG", "/does/not/exist.yaml", "cannot read the settings: open /does/not/exist.yaml")
	env("XTIMER_LISTEN", "8080", "--listen 8080: address 8080: missing port")
	f("--history-sample applies to history in MySQL", []string{"--history-sample", "10"}, nil, "")
	env("XTIMER_CONNECTIONS_PER_ADDRESS", "0", "--connections-per-address must be at least 1, not 0")
	f("--history-sample must be at least 1", []string{"--history-sample", "0"}, nil, "")
	f("--max-calls must be at least 1", []string{"--max-calls", "0"}, nil, "")
	f("--max-calls-per-target must be at least 1", nil, map[string]string{"XTIMER_MAX_CALLS_PER_TARGET": "-1"}, "")
	file("max_calls_per_app: many\n", `max_calls_per_app: "many" is not a whole number`)
	f("--redis-sentinel needs", []string{"--redis-sentinel", "main"}, nil, "")
}

func TestListenPolicy(t *testing.T) {
	f := func(ok bool, listen string, extra map[string]string) {
		t.Helper()
		env := map[string]string{"XTIMER_LISTEN": listen}
		for k, v := range extra {
			env[k] = v
		}
		_, err := loaded(t, nil, env, "")
		if (err == nil) != ok {
			t.Errorf("listening on %s with %v: %v", listen, extra, err)
		}
		if err != nil && !strings.Contains(err.Error(), "no token is set") {
			t.Errorf("it is not said why: %v", err)
		}
	}
	f(true, "127.0.0.1:8080", nil)
	f(true, "[::1]:8080", nil)
	f(true, "localhost:8080", nil)
	f(false, "0.0.0.0:8080", nil)
	f(false, ":8080", nil)
	f(false, "192.0.2.1:8080", nil)
	f(true, ":8080", map[string]string{"XTIMER_INSECURE": "true"})
	f(true, ":8080", map[string]string{"XTIMER_TOKENS": "*:admin:hunter2"})
}

func TestTokens(t *testing.T) {
	sum := sha256.Sum256([]byte("file-token"))
	file := "apps:\n  b: {tokens: [{sha256: " + hex.EncodeToString(sum[:]) + ", role: write}]}\n  a: {webhook_secrets: [whsec_new, whsec_old]}\n"
	s, err := loaded(t, nil, map[string]string{"XTIMER_TOKENS": "b:read:with:colons, *:admin:root"}, file)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range s.Apps {
		names = append(names, a.Name)
	}
	if got := strings.Join(names, " "); got != "* a b" {
		t.Errorf("apps = %s", got)
	}
	b := s.app("b", "")
	if len(b.Tokens) != 2 || b.Tokens[0].SHA256 != sum || b.Tokens[1].SHA256 != sha256.Sum256([]byte("with:colons")) || b.Tokens[1].Role != "read" {
		t.Errorf("b = %+v", b)
	}
	if a := s.app("a", ""); strings.Join(a.WebhookSecrets, " ") != "whsec_new whsec_old" {
		t.Errorf("a = %+v", a)
	}
}

func TestPrintConfig(t *testing.T) {
	const file = "finished_retention: 36h\napps: {billing: {tokens: [{sha256: 5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8, role: admin}], webhook_secrets: [whsec_hunter2]}}\n"
	s, err := loaded(t, []string{"--pprof", "--egress-deny", "10.0.0.0/8"},
		map[string]string{"XTIMER_TOKENS": "*:read:hunter2", "XTIMER_NODE": "true"}, file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := s.Print(&out); err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(out.String(), filepath.Dir(s.Config), "/etc/xtimer")
	for _, secret := range []string{"hunter2", "5e884898"} {
		if strings.Contains(got, secret) {
			t.Errorf("the secret %s is shown", secret)
		}
	}
	golden.Hold(t, "testdata/print-config.yaml", got)
}

package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// composition is as much of a compose file as is held here.
type composition struct {
	Services map[string]struct {
		Image       string
		Build       struct{ Context, Dockerfile string }
		Command     []string
		Environment map[string]string
		Ports       []string
		Volumes     []string
		DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
		Healthcheck struct{ Test []string }
	}
	Volumes map[string]any
}

// composed reads deploy/compose.yml, with the secrets that it wants.
func composed(t *testing.T) (c composition) {
	t.Helper()
	b, err := os.ReadFile("../../deploy/compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	text := os.Expand(string(b), func(name string) string {
		name, _, _ = strings.Cut(name, ":?")
		if name != "XTIMER_DB_PASSWORD" && name != "XTIMER_TOKEN" {
			t.Errorf("compose.yml wants %q, which its head does not name", name)
		}
		return "0123456789abcdef"
	})
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("compose.yml: %v", err)
	}
	return c
}

// TestCompose holds the compose file against what can be known without Docker.
func TestCompose(t *testing.T) {
	c := composed(t)
	for _, name := range []string{"mariadb", "redis", "xtimer"} {
		s, ok := c.Services[name]
		if !ok {
			t.Fatalf("there is no service %s", name)
		}
		if len(s.Healthcheck.Test) < 2 || s.Healthcheck.Test[0] != "CMD" {
			t.Errorf("%s has no health check: %q", name, s.Healthcheck.Test)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s shows the port %s to other machines", name, p)
			}
			for _, taken := range []string{":3306:", ":6379:", ":8080:"} {
				if strings.Contains(p, taken) {
					t.Errorf("%s takes the standard port of this machine: %s", name, p)
				}
			}
		}
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			if _, ok := c.Volumes[volume]; !ok {
				t.Errorf("%s uses the volume %s, which is not declared", name, volume)
			}
		}
		for on, d := range s.DependsOn {
			if _, ok := c.Services[on]; !ok || d.Condition != "service_healthy" {
				t.Errorf("%s waits for %s: %q", name, on, d.Condition)
			}
		}
	}
	if redis := c.Services["redis"].Command; !strings.Contains(strings.Join(redis, " "), "--maxmemory-policy noeviction") {
		t.Errorf("Redis may evict: %q", redis)
	}
	if build := c.Services["xtimer"].Build; build.Context != ".." || build.Dockerfile != "deploy/Dockerfile" {
		t.Errorf("xtimer is built from %+v", build)
	}
}

// TestComposeSettings: the program takes the environment that it is given, and
// its health check is a command that works for the bearer of the token.
func TestComposeSettings(t *testing.T) {
	x := composed(t).Services["xtimer"]
	for name, value := range x.Environment {
		t.Setenv(name, value)
	}
	out, stderr, status := runs(t, "serve", "--print-config")
	if status != 0 {
		t.Fatalf("serve --print-config: status %d\n%s", status, stderr)
	}
	for name := range x.Environment {
		if name != "XTIMER_TOKEN" && !strings.Contains(out, "environment "+name) {
			t.Errorf("%s is no setting:\n%s", name, out)
		}
	}

	t.Setenv("XTIMER_MYSQL_DSN", "") // the embedded tiers will do here
	t.Setenv("XTIMER_REDIS_ADDR", "")
	s := serves(t, "--data-dir", t.TempDir())
	t.Setenv("XTIMER_SERVER", s.url)
	check := x.Healthcheck.Test[1:]
	if check[0] != "/xtimer" {
		t.Fatalf("the health check runs %q", check)
	}
	if _, stderr, status := runs(t, check[1:]...); status != 0 {
		t.Errorf("the health check %q: status %d\n%s", check, status, stderr)
	}
	t.Setenv("XTIMER_TOKEN", "another")
	if _, _, status := runs(t, check[1:]...); status == 0 {
		t.Errorf("the health check %q does not ask the server", check)
	}
}

// TestDockerfile: what is built from is all copied.
func TestDockerfile(t *testing.T) {
	b, err := os.ReadFile("../../deploy/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(b), "\n")
	for p := range strings.Lines(string(out)) {
		folder, found := strings.CutPrefix(strings.TrimSpace(p), modulePrefix)
		if !found {
			continue
		}
		folder, _, _ = strings.Cut(folder, "/")
		if !slices.Contains(lines, "COPY "+folder+" "+folder) {
			t.Errorf("the Dockerfile does not copy %s", folder)
		}
	}
}

package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"xtimer/cmd/xtimer/settings"
)

// composition is as much of a compose file as is held here.
type composition struct {
	Services map[string]service
	Volumes  map[string]any
}

type service struct {
	Image       string
	Build       struct{ Context, Dockerfile string }
	Profiles    []string
	Command     []string
	Environment map[string]string
	Ports       []string
	Volumes     []string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Healthcheck struct{ Test []string }
}

// servers are the services of the compose file that run xtimer; the first one runs always,
// the others in the profile cluster.
var servers = []string{"xtimer", "xtimer-2", "xtimer-3"}

// composed reads deploy/compose.yml, with the secrets that it wants, and with a value of
// XTIMER_CLUSTER.
func composed(t *testing.T, cluster string) (c composition) {
	t.Helper()
	b, err := os.ReadFile("../../deploy/compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	text := os.Expand(string(b), func(name string) string {
		name, rest, _ := strings.Cut(name, ":")
		switch name {
		case "XTIMER_DB_PASSWORD", "XTIMER_TOKEN":
			return "0123456789abcdef"
		case "XTIMER_CLUSTER":
			with, found := strings.CutPrefix(rest, "+")
			switch {
			case rest == "-":
				return cluster
			case !found:
				t.Errorf("compose.yml requires XTIMER_CLUSTER, which a single server does not have: %q", rest)
			case cluster != "":
				return with
			}
			return ""
		}
		t.Errorf("compose.yml wants %q, which its head does not name", name)
		return ""
	})
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("compose.yml: %v", err)
	}
	return c
}

// TestCompose holds the compose file against what can be known without Docker.
func TestCompose(t *testing.T) {
	c := composed(t, "")
	taken := map[string]string{} // ports and volumes, by service
	for _, name := range append([]string{"mariadb", "redis"}, servers...) {
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
		for _, x := range slices.Concat(s.Ports, s.Volumes) {
			if other, ok := taken[x]; ok {
				t.Errorf("%s and %s both have %s", name, other, x)
			}
			taken[x] = name
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
	for i, name := range servers {
		s := c.Services[name]
		if s.Build.Context != ".." || s.Build.Dockerfile != "deploy/Dockerfile" {
			t.Errorf("%s is built from %+v", name, s.Build)
		}
		if (i > 0) != slices.Equal(s.Profiles, []string{"cluster"}) {
			t.Errorf("%s is in the profiles %q", name, s.Profiles)
		}
	}
}

// TestComposeSettings: the program takes the environment of each server, alone and in the
// cluster. In the cluster each is another node, which the others reach by the name of its
// service.
func TestComposeSettings(t *testing.T) {
	for _, run := range []struct {
		cluster string
		servers []string
	}{{"", servers[:1]}, {"true", servers}} {
		c := composed(t, run.cluster)
		for _, name := range run.servers {
			t.Run(name+run.cluster, func(t *testing.T) {
				x := c.Services[name]
				for name, value := range x.Environment {
					t.Setenv(name, value)
				}
				out, stderr, status := runs(t, "serve", "--print-config")
				if status != 0 {
					t.Fatalf("serve --print-config: status %d\n%s", status, stderr)
				}
				for name, value := range x.Environment {
					if name != "XTIMER_TOKEN" && value != "" && !strings.Contains(out, "environment "+name) {
						t.Errorf("%s is no setting:\n%s", name, out)
					}
				}
				var shown struct {
					Cluster         bool
					Node, Advertise string
				}
				if err := yaml.Unmarshal([]byte(out), &shown); err != nil {
					t.Fatal(err)
				}
				if run.cluster == "" && (shown.Cluster || shown.Advertise != "" || shown.Node != settings.Default().Node) {
					t.Errorf("a single server is told of a cluster: %+v", shown)
				}
				if run.cluster != "" && (!shown.Cluster || shown.Node != name || shown.Advertise != name+":8080") {
					t.Errorf("the node is %+v", shown)
				}
			})
		}
	}
}

// TestComposeCheck: the health check is a command that works for the bearer of the token.
func TestComposeCheck(t *testing.T) {
	x := composed(t, "").Services["xtimer"]
	for name, value := range x.Environment {
		t.Setenv(name, value)
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

package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the golden files of the chart anew")

// chartTool runs helm or kubeconform, whose versions go.mod pins, and returns what the
// tool prints.
func chartTool(t *testing.T, input []byte, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"tool"}, args...)...)
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home, "KUBECONFIG=/dev/null")
	cmd.Stdin = bytes.NewReader(input)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return string(out) + string(exit.Stderr), err
	}
	return string(out), err
}

// valuesOf are the sets of values that the chart is tried with, by name.
func valuesOf(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/chart/*.values.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d sets of values, %v", len(files), err)
	}
	sets := map[string]string{}
	for _, file := range files {
		sets[strings.TrimSuffix(filepath.Base(file), ".values.yaml")] = file
	}
	return sets
}

// TestChart: for each set of values, helm lint has nothing to say against the chart, the
// objects are those of the golden file, and each is what its schema permits.
func TestChart(t *testing.T) {
	for name, values := range valuesOf(t) {
		t.Run(name, func(t *testing.T) {
			if out, err := chartTool(t, nil, "helm", "lint", "--strict", "../chart", "-f", values); err != nil || strings.Contains(out, "[WARNING]") {
				t.Errorf("helm lint: %v\n%s", err, out)
			}
			objects, err := chartTool(t, nil, "helm", "template", "xtimer", "../chart", "-f", values)
			if err != nil {
				t.Fatalf("helm template: %v\n%s", err, objects)
			}
			golden := filepath.Join("testdata/chart", name+".golden.yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(objects), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(golden); err != nil || string(want) != objects {
				t.Errorf("%v: the objects are not those of %s (-update writes them):\n%s", err, golden, objects)
			}
			conforms(t, []byte(objects))
		})
	}
}

// conforms: kubeconform finds nothing against objects, and looks at all of them.
func conforms(t *testing.T, objects []byte) {
	t.Helper()
	out, err := chartTool(t, objects, "kubeconform", "-strict", "-summary", "-schema-location", "schemas/{{.ResourceKind}}{{.KindSuffix}}.json")
	if err != nil || !strings.Contains(out, "Invalid: 0, Errors: 0, Skipped: 0") {
		t.Errorf("kubeconform: %v\n%s", err, out)
	}
}

// TestSchemas: the schemas refuse what Kubernetes refuses.
func TestSchemas(t *testing.T) {
	objects, err := os.ReadFile("testdata/chart/secret.golden.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, wrong string }{
		{"replicas: 1", "replicas: one"},
		{"replicas: 1", "replica: 1"},
		{"path: /livez", "paths: /livez"},
		{"runAsNonRoot: true", "runAsNonRoot: yes please"},
		{"name: http\n      port: 8080", "name: http"},
		{"endpoints:", "endpoint:"},
		{"secretName: ", "name: "},
	} {
		t.Run(c.wrong, func(t *testing.T) {
			changed := strings.Replace(string(objects), c.old, c.wrong, 1)
			if changed == string(objects) {
				t.Fatalf("%q is not in the golden file", c.old)
			}
			if out, err := chartTool(t, []byte(changed), "kubeconform", "-strict", "-schema-location", "schemas/{{.ResourceKind}}{{.KindSuffix}}.json"); err == nil || !strings.Contains(out, " is invalid: ") {
				t.Errorf("kubeconform does not call it invalid: %v\n%s", err, out)
			}
		})
	}
}

// TestChartRefuses: what is missing or wrong in the values is said before anything is installed.
func TestChartRefuses(t *testing.T) {
	const embedded = "testdata/chart/embedded.values.yaml"
	for _, c := range []struct {
		says string
		args []string
	}{
		{"image.repository is required", []string{"--set", "existingSecret=x"}},
		{"no token is set", []string{"--set", "image.repository=x"}},
		{"settings and existingSecret are both set", []string{"-f", embedded, "--set", "existingSecret=x"}},
		{"replicas", []string{"-f", embedded, "--set", "replicas=2"}},
		{"several nodes share a MySQL and a Redis", []string{"-f", embedded, "--set", "nodes=2"}},
		{"several nodes share a MySQL and a Redis", []string{"-f", embedded, "--set", "nodes=2,settings.mysql_dsn=x"}},
		{"several nodes share a MySQL and a Redis", []string{"-f", embedded, "--set", "nodes=2,settings.redis_addr=x"}},
		{"nodes", []string{"-f", embedded, "--set", "nodes=0"}},
		{"clasName", []string{"-f", embedded, "--set", "storage.clasName=fast"}},
	} {
		out, err := chartTool(t, nil, append([]string{"helm", "template", "xtimer", "../chart"}, c.args...)...)
		if err == nil || !strings.Contains(out, c.says) {
			t.Errorf("%q: %v, not %q:\n%s", c.args, err, c.says, out)
		}
	}
}

// pod is as much of the objects of the chart as is needed to run the server.
type pod struct {
	user     string
	args     []string
	probes   []string
	settings string
}

// podOf reads the pod from the objects of the chart.
func podOf(t *testing.T, objects string) (p pod) {
	t.Helper()
	type probe struct {
		HTTPGet struct{ Path string } `yaml:"httpGet"`
	}
	for d := yaml.NewDecoder(strings.NewReader(objects)); ; {
		var object struct {
			StringData map[string]string `yaml:"stringData"`
			Spec       struct {
				Template struct {
					Spec struct {
						SecurityContext struct {
							User  string `yaml:"runAsUser"`
							Group string `yaml:"runAsGroup"`
						} `yaml:"securityContext"`
						Containers []struct {
							Args      []string
							Liveness  probe `yaml:"livenessProbe"`
							Readiness probe `yaml:"readinessProbe"`
						}
					}
				}
			}
		}
		if err := d.Decode(&object); errors.Is(err, io.EOF) {
			return p
		} else if err != nil {
			t.Fatal(err)
		}
		if text, ok := object.StringData["xtimer.yaml"]; ok {
			p.settings = text
		}
		template := object.Spec.Template.Spec
		for _, c := range template.Containers {
			p.args, p.probes = c.Args, []string{c.Liveness.HTTPGet.Path, c.Readiness.HTTPGet.Path}
			p.user = template.SecurityContext.User + ":" + template.SecurityContext.Group
		}
	}
}

// TestChartPacked: helm accepts the chart of the release. Its pod runs over the image of
// the release: the server starts with the settings of the Secret over a volume that
// belongs to root and to the group of the pod, the probes pass, and a timer fires.
func TestChartPacked(t *testing.T) {
	const values = "testdata/chart/embedded.values.yaml"
	packed := released(t, ".tgz")
	if out, err := chartTool(t, nil, "helm", "lint", "--strict", packed, "-f", values); err != nil {
		t.Errorf("helm lint: %v\n%s", err, out)
	}
	objects, err := chartTool(t, nil, "helm", "template", "xtimer", packed, "-f", values)
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, objects)
	}
	conforms(t, []byte(objects))
	if image := "image: \"registry.example.com/xtimer:" + strings.ReplaceAll(versionOf(t), "+", "_") + "\""; !strings.Contains(objects, image) {
		t.Errorf("no %s in\n%s", image, objects)
	}

	p, image, dir := podOf(t, objects), pulled(t, "amd64"), t.TempDir()
	volume, settings := filepath.Join(dir, "volume"), filepath.Join(dir, "settings")
	does(t, "install", "-d", "-g", "65532", "-m", "2770", volume)
	does(t, "install", "-d", "-m", "0755", settings)
	if err := os.WriteFile(settings+"/xtimer.yaml", []byte(p.settings), 0o600); err != nil {
		t.Fatal(err)
	}
	does(t, "chgrp", "65532", settings+"/xtimer.yaml")
	does(t, "chmod", "0440", settings+"/xtimer.yaml")
	address := image.runsReadOnly(t, p.user, map[string]string{"/data": volume, "/etc/xtimer": settings}, slices.Concat(image.entrypoint, p.args))
	fires(t, address, "correct-horse")
	for _, path := range p.probes {
		answer, err := http.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || !strings.HasPrefix(string(body), `{"status":`) {
			t.Errorf("the probe %q is answered %s %.100s (%v)", path, answer.Status, body, err)
		}
	}
	if _, err := os.Stat(volume + "/xtimer/journal"); err != nil {
		t.Errorf("the server does not keep its data in the volume: %v", err)
	}
}

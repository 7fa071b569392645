package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// podFields are what Kubernetes tells a pod of itself, by the paths of the fields.
var podFields = map[string]string{"metadata.name": "xtimer-0", "status.podIP": "fd00::7"}

// pod is what the chart for Kubernetes runs, as much as is held here.
type pod struct {
	Replicas   int `yaml:"-"` // how many there are
	Grace      int `yaml:"terminationGracePeriodSeconds"`
	Containers []struct {
		Args []string
		Env  []struct {
			Name      string
			ValueFrom struct {
				FieldRef struct {
					FieldPath string `yaml:"fieldPath"`
				} `yaml:"fieldRef"`
			} `yaml:"valueFrom"`
		}
		Liveness struct {
			HTTPGet struct{ Path string } `yaml:"httpGet"`
		} `yaml:"livenessProbe"`
		Readiness struct {
			HTTPGet struct{ Path string } `yaml:"httpGet"`
		} `yaml:"readinessProbe"`
	}
}

// charted reads the pod and the settings from objects that Helm made of the chart.
// deploy/release holds them against the chart.
func charted(t *testing.T, file string) (p pod, settings string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for d := yaml.NewDecoder(strings.NewReader(string(b))); ; {
		var object struct {
			StringData map[string]string `yaml:"stringData"`
			Spec       struct {
				Replicas int
				Template struct{ Spec pod }
			}
		}
		err := d.Decode(&object)
		if errors.Is(err, io.EOF) {
			return p, settings
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if text, ok := object.StringData["xtimer.yaml"]; ok {
			settings = text
		}
		if len(object.Spec.Template.Spec.Containers) > 0 {
			p = object.Spec.Template.Spec
			p.Replicas = object.Spec.Replicas
		}
	}
}

// TestChart: the program takes the arguments and the settings of the chart, the probes
// ask for pages that it has, and Kubernetes waits longer than the server drains.
func TestChart(t *testing.T) {
	files, err := filepath.Glob("../../deploy/release/testdata/chart/*.golden.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	s := serves(t, "--data-dir", t.TempDir())
	for _, file := range files {
		p, settings := charted(t, file)
		c := p.Containers[0]
		name := filepath.Join(t.TempDir(), "xtimer.yaml")
		if settings == "" { // they are in a Secret that exists already
			settings = "insecure: true\n"
		}
		if err := os.WriteFile(name, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		args := slices.Clone(c.Args)
		for i := range args {
			args[i] = strings.Replace(args[i], "/etc/xtimer/xtimer.yaml", name, 1)
			for _, v := range c.Env {
				args[i] = strings.ReplaceAll(args[i], "$("+v.Name+")", podFields[v.ValueFrom.FieldRef.FieldPath])
			}
		}
		out, stderr, status := runs(t, append(args, "--print-config")...)
		if status != 0 {
			t.Errorf("%s: %q: status %d\n%s", file, args, status, stderr)
			continue
		}
		var shown struct {
			Listen, Drain   string
			Cluster         bool
			Node, Advertise string
		}
		if err := yaml.Unmarshal([]byte(out), &shown); err != nil {
			t.Fatal(err)
		}
		drain, err := time.ParseDuration(shown.Drain)
		if grace := time.Duration(p.Grace) * time.Second; err != nil || grace < drain+15*time.Second {
			t.Errorf("%s: the server drains for %s and is killed after %v (%v)", file, shown.Drain, grace, err)
		}
		if shown.Listen != ":8080" {
			t.Errorf("%s: the server listens on %s, the port of the pod is 8080", file, shown.Listen)
		}
		if shown.Cluster != (p.Replicas > 1) || shown.Cluster && (shown.Node != "xtimer-0" || shown.Advertise != "[fd00::7]:8080") {
			t.Errorf("%s: one of %d servers has the settings %+v", file, p.Replicas, shown)
		}
		for path, says := range map[string]string{c.Liveness.HTTPGet.Path: `{"status":"ok"`, c.Readiness.HTTPGet.Path: `{"status":"ready"`} {
			if code, answer := s.get(path); code != 200 || !strings.HasPrefix(answer, says) {
				t.Errorf("%s: the probe %q is answered %d %.100s", file, path, code, answer)
			}
		}
	}
}

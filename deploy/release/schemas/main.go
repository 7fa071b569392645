// Command schemas writes the JSON schemas that kubeconform checks the chart with, into
// the folder that it runs in. They come from the descriptions of the API that Kubernetes
// and the Prometheus Operator publish in their Go modules, under Apache-2.0. Run it for
// another version of these, or when the chart has an object of another kind.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

const (
	kubernetes = "k8s.io/kubernetes@v1.37.2"
	operator   = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
)

// kinds are the objects of the chart, by the names that kubeconform gives their schemas.
var kinds = map[string]string{
	"poddisruptionbudget-policy-v1": "io.k8s.api.policy.v1.PodDisruptionBudget",
	"secret-v1":                     "io.k8s.api.core.v1.Secret",
	"service-v1":                    "io.k8s.api.core.v1.Service",
	"statefulset-apps-v1":           "io.k8s.api.apps.v1.StatefulSet",
}

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
}

func write() error {
	var api struct {
		Definitions map[string]map[string]any `json:"definitions"`
	}
	if err := read(kubernetes, "api/openapi-spec/swagger.json", json.Unmarshal, &api); err != nil {
		return err
	}
	for name, kind := range kinds {
		if err := writeSchema(name, schemaOf(kind, api.Definitions)); err != nil {
			return err
		}
	}
	var monitor struct {
		Spec struct {
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPI map[string]any `yaml:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := read(operator, "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml", yaml.Unmarshal, &monitor); err != nil {
		return err
	}
	v := monitor.Spec.Versions
	if len(v) != 1 || v[0].Name != "v1" {
		return fmt.Errorf("the ServiceMonitor has the versions %v, not v1 only", v)
	}
	schema := v[0].Schema.OpenAPI
	delete(schema["properties"].(map[string]any), "status")
	return writeSchema("servicemonitor-monitoring-v1", strict(schema).(map[string]any))
}

// read brings a Go module to this machine and reads one of its files.
func read(module, name string, decode func([]byte, any) error, into any) error {
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = os.TempDir() // no module of ours requires it
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("downloading %s: %w: %s", module, err, out)
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(downloaded.Dir, name))
	if err != nil {
		return err
	}
	if err := decode(b, into); err != nil {
		return fmt.Errorf("reading %s of %s: %w", name, module, err)
	}
	return nil
}

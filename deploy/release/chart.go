package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// writeChart packs the chart for Kubernetes with the version of the release. helm
// package would write the time of its run into the archive.
func (r *release) writeChart() error {
	folder := filepath.Join(r.source, "deploy/chart")
	about, err := r.chartMetadata(filepath.Join(folder, "Chart.yaml"))
	if err != nil {
		return err
	}
	files := []file{{"Chart.yaml", about, 0o644}, {"LICENSE", filepath.Join(r.source, "LICENSE"), 0o644}}
	for _, name := range []string{"values.yaml", "values.schema.json"} {
		files = append(files, file{name, filepath.Join(folder, name), 0o644})
	}
	templates, err := filesOf("templates", filepath.Join(folder, "templates"))
	if err != nil {
		return err
	}
	return writeTar(filepath.Join(r.out, fmt.Sprintf("xtimer-%s.tgz", r.version)), "xtimer", append(files, templates...), r.date)
}

// chartMetadata is a copy of Chart.yaml with the version of the release.
func (r *release) chartMetadata(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if n := bytes.Count(text, []byte("0.0.0")); n != 2 {
		return "", fmt.Errorf("%s has the version 0.0.0 at %d places, not at 2", file, n)
	}
	copied := filepath.Join(r.stage, "Chart.yaml")
	return copied, os.WriteFile(copied, bytes.ReplaceAll(text, []byte("0.0.0"), []byte(r.version)), 0o644)
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// buildAll builds the program for each target, and for this machine, which makes
// the manual.
func (r *release) buildAll() error {
	targets := r.targets
	if !slices.Contains(targets, host()) {
		targets = append(slices.Clone(targets), host())
	}
	for _, t := range targets {
		if err := r.build(t); err != nil {
			return fmt.Errorf("building for %s: %w", t, err)
		}
	}
	return nil
}

// build builds the program without C, without paths of this machine, and with the
// version of the release.
func (r *release) build(t target) error {
	flags := fmt.Sprintf("-s -w -X 'main.stampedVersion=%s' -X 'main.stampedCommit=%s'", r.version, r.commit)
	path, err := filepath.Abs(r.program(t))
	if err != nil {
		return err
	}
	return r.goTool(t, os.Stderr, "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", path, "./cmd/xtimer")
}

// goTool runs the Go tool in the checkout, for a target. The settings of the
// environment that change programs are set aside.
func (r *release) goTool(t target, stdout *os.File, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir = r.source
	for _, v := range os.Environ() {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "GOFLAGS", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GODEBUG", "GOFIPS140":
		default:
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "CGO_ENABLED=0", "GOOS="+t.system, "GOARCH="+t.processor)
	cmd.Stdout, cmd.Stderr = stdout, os.Stderr
	return cmd.Run()
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// writeManual has the program write its manual pages and its completions.
func (r *release) writeManual() error {
	for _, dir := range []string{"man", "completions"} {
		if err := os.Mkdir(filepath.Join(r.stage, dir), 0o755); err != nil {
			return err
		}
	}
	if _, err := r.runProgram("man", filepath.Join(r.stage, "man")); err != nil {
		return err
	}
	for shell, name := range map[string]string{"bash": "xtimer.bash", "zsh": "_xtimer", "fish": "xtimer.fish"} {
		script, err := r.runProgram("completion", shell)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.stage, "completions", name), script, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// runProgram runs the program that was built for this machine.
func (r *release) runProgram(args ...string) ([]byte, error) {
	cmd := exec.Command(r.program(host()), args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.date.Unix()))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("xtimer %v: %w", args, err)
	}
	return out, nil
}

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDoctor(t *testing.T) {
	var out bytes.Buffer
	dir := t.TempDir()
	if err := examine(t.Context(), &out, filepath.Join(dir, "not", "there", "yet"), ""); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"plain sleep", "exact sleep", "fsync", "free space", "synchronised", "open files", "secrets are stored as they are", "What to expect", "never before it"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is nothing about %q:\n%s", want, out.String())
		}
	}
	if es, _ := os.ReadDir(dir); len(es) != 0 {
		t.Errorf("it left %v behind", es)
	}
}

func TestDoctorUnusable(t *testing.T) {
	// Nobody can write to /proc, not even root.
	_, _, status := runs(t, "doctor", "--data-dir", "/proc")
	if status != 1 {
		t.Errorf("status %d for a directory that cannot be written, want 1", status)
	}
}

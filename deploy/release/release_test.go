package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// dist is the release under test, which make test-release has made.
var dist = flag.String("dist", "../../dist", "folder of the release")

// file of the release whose name ends so; there must be exactly one.
func released(t *testing.T, suffix string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(*dist, "*"+suffix))
	if err != nil || len(found) != 1 {
		t.Fatalf("%d files end in %s (%v): make release makes them", len(found), suffix, err)
	}
	path, err := filepath.Abs(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// does runs a program and returns what it says; it must succeed.
func does(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestSums: SHA256SUMS names every file of the release, and sha256sum agrees.
func TestSums(t *testing.T) {
	cmd := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
	cmd.Dir = *dist
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	entries, err := os.ReadDir(*dist)
	if err != nil {
		t.Fatal(err)
	}
	if checked := bytes.Count(out, []byte(": OK\n")); checked != len(entries)-1 || checked < 10 {
		t.Errorf("%d sums for %d files", checked, len(entries)-1)
	}
}

// TestReproducible makes the release again from a clone in another folder, with an
// empty build cache: all files are the same, byte by byte.
func TestReproducible(t *testing.T) {
	clone := filepath.Join(t.TempDir(), "elsewhere")
	does(t, "git", "clone", "-q", "../..", clone)
	does(t, "git", "-C", clone, "checkout", "-q", strings.TrimSpace(does(t, "git", "rev-parse", "HEAD")))
	cmd := exec.Command("make", "release", "VERSION="+versionOf(t))
	cmd.Dir = clone
	cmd.Env = append(os.Environ(), "GOCACHE="+filepath.Join(t.TempDir(), "cache"), "TZ=Asia/Shanghai", "LANG=C.UTF-8")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(*dist)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		one, two := sum(t, filepath.Join(*dist, e.Name())), sum(t, filepath.Join(clone, "dist", e.Name()))
		if one != two {
			t.Errorf("%s: %s and %s", e.Name(), one, two)
		}
	}
}

func sum(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

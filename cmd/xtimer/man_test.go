package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMan: each command has a page, with its flags and examples, and the pages of
// one date are equal byte by byte.
func TestMan(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1764028800")
	former := map[string]string{}
	for range 2 {
		dir := t.TempDir()
		if _, stderr, status := runs(t, "man", dir); status != 0 {
			t.Fatalf("status %d: %s", status, stderr)
		}
		pages, err := filepath.Glob(dir + "/*.1")
		if err != nil || len(pages) < 20 {
			t.Fatalf("%d pages, %v", len(pages), err)
		}
		for _, name := range pages {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			page, was := string(b), former[filepath.Base(name)]
			if was != "" && was != page {
				t.Errorf("%s differs between two runs", filepath.Base(name))
			}
			former[filepath.Base(name)] = page
		}
	}
	for name, want := range map[string]string{"xtimer.1": "fBxtimer-serve(1)", "xtimer-serve.1": "--data-dir", "xtimer-timer-create.1": "SH EXAMPLE"} {
		if page := former[name]; !strings.Contains(page, want) {
			t.Errorf("%s does not contain %q:\n%.600s", name, want, page)
		}
	}
	if strings.Contains(former["xtimer.1"], "xtimer-man(1)") {
		t.Error("the hidden command is in the manual")
	}
}

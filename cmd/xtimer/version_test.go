package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	out, _, status := runs(t, "version")
	want := regexp.MustCompile(`^xtimer   \S+\ncommit   .+\ngo       go1\.\S+ \w+/\w+\nformats  timer 5, task 4, owed 4\n$`)
	if status != 0 || !want.MatchString(out) {
		t.Errorf("status %d, %q", status, out)
	}
}

// TestVersionAsJSON: -o json has the same for programs.
func TestVersionAsJSON(t *testing.T) {
	out, _, status := runs(t, "version", "-o", "json")
	var v struct {
		Version, Commit, Platform string
		Formats                   map[string]int
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || status != 0 || v.Version == "" || v.Commit == "" || v.Formats["timer"] != 5 || v.Formats["task"] != 4 || v.Formats["owed"] != 4 {
		t.Errorf("status %d, %v, %q", status, err, out)
	}
}

// TestVersionFlag: --version is one line.
func TestVersionFlag(t *testing.T) {
	out, _, status := runs(t, "--version")
	if status != 0 || !regexp.MustCompile(`^xtimer \S+ \(.+\)\n$`).MatchString(out) {
		t.Errorf("status %d, %q", status, out)
	}
}

// TestHelp: every command says what it does, at length, and gives an example.
func TestHelp(t *testing.T) {
	for _, c := range newRoot().Commands() {
		if c.Short == "" || c.Example == "" && !c.IsAdditionalHelpTopicCommand() || c.Long == "" && c.Name() != "version" {
			t.Errorf("%s: the help is not complete", c.Name())
		}
		for line := range strings.Lines(c.Long + "\n" + c.Example) {
			if len([]rune(line)) > 100 {
				t.Errorf("%s: a long line: %s", c.Name(), line)
			}
		}
	}
}

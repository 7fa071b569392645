package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestModulePassages: the passages that make module replaces stand in the documents.
func TestModulePassages(t *testing.T) {
	const file = "../../deploy/release/module/instructions.json"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var passages map[string]struct{ Now string }
	if err := json.Unmarshal(b, &passages); err != nil || len(passages) == 0 {
		t.Fatalf("%s: %d passages, %v", file, len(passages), err)
	}
	for document, passage := range passages {
		text, err := os.ReadFile("../../" + document)
		if err != nil {
			t.Fatal(err)
		}
		public := strings.Contains(string(text), "go get ") && !strings.HasPrefix(modulePrefix, "xtimer/")
		if !public && !strings.Contains(string(text), passage.Now) {
			t.Errorf("%s does not have the passage that %s names; change both together:\n%s", document, file, passage.Now)
		}
	}
}

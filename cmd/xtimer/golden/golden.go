// Package golden holds what tests print against files.
package golden

import (
	"flag"
	"os"
	"testing"
)

// Update is the flag -update: write the files anew.
var Update = flag.Bool("update", false, "write the golden files anew")

// Hold holds a text against a file of testdata; -update writes the file.
func Hold(t *testing.T, name, got string) {
	t.Helper()
	if *Update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s says otherwise (-update if it is to change):\n%s", name, got)
	}
}

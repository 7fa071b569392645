package checker

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// FuzzReadLines: a log is refused, or all of it is read: it is the same when it is
// written again, and something more behind it is not passed over.
func FuzzReadLines(f *testing.F) {
	f.Add("{\"fault\":\"kill\",\"from\":1,\"to\":2}\n{\"from\":3}\n")
	f.Add("{}{}\nnull")
	f.Add("{\"from\":1}\n]")
	f.Add("")
	name := filepath.Join(f.TempDir(), "log")
	f.Fuzz(func(t *testing.T, text string) {
		read := func(text string) (lines []Broken, err error) {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return lines, readLines(name, &lines)
		}
		lines, err := read(text)
		if err != nil {
			return
		}
		for _, more := range []string{"]", "}", "{", "\x00"} {
			if _, err := read(text + "\n" + more); err == nil {
				t.Fatalf("%q behind it is passed over", more)
			}
		}
		var again []Broken
		if err := writeLines(name, lines); err != nil {
			t.Fatal(err)
		}
		if err := readLines(name, &again); err != nil || !reflect.DeepEqual(lines, again) {
			t.Fatalf("%+v is written, and %+v read, %v", lines, again, err)
		}
	})
}

package scheduler_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every number of REGRESSIONS.md names a test or a file, and what it names is there.
func TestRegressionsAreHeld(t *testing.T) {
	page, err := os.ReadFile("REGRESSIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| (\d+) \| .+ \| (.+) \|$`)
	held := regexp.MustCompile("`([a-z/]+)\\.(Test\\w+)`|`([a-z/_]+\\.go)`")
	tests := map[string]map[string]bool{} // by folder
	numbers := map[string]bool{}
	for _, r := range row.FindAllStringSubmatch(string(page), -1) {
		number, by := r[1], held.FindAllStringSubmatch(r[2], -1)
		if numbers[number] {
			t.Errorf("%s is there twice", number)
		}
		if numbers[number] = true; len(by) == 0 {
			t.Errorf("%s is held by nothing", number)
		}
		for _, h := range by {
			folder, name, file := h[1], h[2], h[3]
			if file != "" {
				if _, err := os.Stat(filepath.Join("..", "..", file)); err != nil {
					t.Errorf("%s: %v", number, err)
				}
				continue
			}
			if tests[folder] == nil {
				tests[folder] = testsIn(t, filepath.Join("..", "..", folder))
			}
			if !tests[folder][name] {
				t.Errorf("%s: there is no %s in %s", number, name, folder)
			}
		}
	}
	if len(numbers) != 29 {
		t.Errorf("the page has %d numbers, not 29", len(numbers))
	}
}

// testsIn are the tests of a folder by their names.
func testsIn(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				names[fn.Name.Name] = true
			}
		}
	}
	return names
}

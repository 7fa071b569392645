package inspect

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// A reader changes nothing: of the tiers and the journal it calls only what reads.
func TestReadersChangeNothing(t *testing.T) {
	reads := map[string][]string{
		"Cold": {
			"Counts", "LastTask", "LeftOut", "Lives", "Load", "Owed", "OwedIn", "OwedPage", "Task", "Tasks", "Ranks", "Timer", "TimerByName", "Timers", "Versions",
		},
		"Warm":    {"Len", "Load"},
		"Journal": {"Len"},
	}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for n := range ast.Preorder(file) {
			called, ok := n.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			of, ok := called.X.(*ast.SelectorExpr)
			if !ok || reads[of.Sel.Name] == nil {
				continue
			}
			if calls++; !slices.Contains(reads[of.Sel.Name], called.Sel.Name) {
				t.Errorf("%s calls %s.%s", f.Name(), of.Sel.Name, called.Sel.Name)
			}
		}
	}
	if calls == 0 {
		t.Error("no call was found")
	}
}

package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a reader takes in at a time is bounded. Only code counts, not tests.
const (
	maxFiles      = 25 // of a package
	maxLines      = 400
	maxFuncLines  = 80
	maxCyclomatic = 20 // 1, and 1 for each if, for, case, && and || of a function
	maxFields     = 20 // of engine/scheduler.Scheduler: what has more has parts that could own their state
)

// tooLarge is what is above a bound still, with its number. A number may only fall, and
// an entry may only go.
var tooLarge = map[string]int{}

// TestSizes holds the bounds.
func TestSizes(t *testing.T) {
	found := map[string]int{}
	over := func(name string, n, most int) {
		if n > most {
			found[name] = n
		}
	}
	files := map[string]int{} // by folder
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && name != "."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		src, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		files[path.Dir(name)]++
		over("lines of "+name, bytes.Count(src, []byte("\n")), maxLines)
		return eachFunc(name, src, func(fn string, lines, cyclomatic int) {
			over("lines of "+path.Dir(name)+"."+fn, lines, maxFuncLines)
			over("cyclomatic of "+path.Dir(name)+"."+fn, cyclomatic, maxCyclomatic)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder, n := range files {
		over("files of "+folder, n, maxFiles)
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if n, known := found[name], tooLarge[name]; n > known {
			t.Errorf("%s: %d are too many (known: %d)", name, n, known)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tooLarge)) {
		if n, known := found[name], tooLarge[name]; n < known {
			t.Errorf("%s: write down %d instead of %d in tooLarge, or drop it if that is 0: it has shrunk", name, n, known)
		}
	}
}

// TestSizeOfTheScheduler holds the bound of its struct, to which every stage adds if it can.
func TestSizeOfTheScheduler(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../engine/scheduler/scheduler.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for d := range ast.Preorder(file) {
		if d, ok := d.(*ast.TypeSpec); ok && d.Name.Name == "Scheduler" {
			n = d.Type.(*ast.StructType).Fields.NumFields()
		}
	}
	if n == 0 || n > maxFields {
		t.Errorf("Scheduler has %d fields: at most %d", n, maxFields)
	}
}

// eachFunc gives the functions of a file by name, or Type.name.
func eachFunc(name string, src []byte, give func(fn string, lines, cyclomatic int)) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, src, 0)
	if err != nil {
		return err
	}
	for _, d := range file.Decls {
		if d, ok := d.(*ast.FuncDecl); ok {
			give(typeOf(d)+d.Name.Name, set.Position(d.End()).Line-set.Position(d.Pos()).Line+1, cyclomatic(d))
		}
	}
	return nil
}

// typeOf is "Type." of a method, and "" of a function.
func typeOf(d *ast.FuncDecl) (of string) {
	if d.Recv == nil {
		return ""
	}
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && of == "" {
			of = id.Name + "."
		}
		return of == ""
	})
	return of
}

func cyclomatic(d *ast.FuncDecl) int {
	n := 1
	ast.Inspect(d, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			n += min(len(x.List), 1) // 0: default
		case *ast.CommClause:
			if x.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

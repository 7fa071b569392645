package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// obscure are phrases that no text of the program may use: pronouns without a
// noun, inverted clauses and metaphors, which a reader must guess at.
var obscure = []string{
	"there is no such thing", "it begins with", "is not there to be had", "to be had of it", "cannot be it",
	"are over: try again", "is none of its", "nothing else is kept", "somebody else", "held against", "hold it against",
	"holds them against", "where to?", "prove itself", "says so in words", "made of this",
	"so many timers", "take over", "stands there", "what it was:", "it is no ", "is no status", "is no origin",
	"of which nothing", "of a crontab: ", "on our side", "the server said no",
	"there is no such", "begins so", "is none of", "tells whether", "so often", "as planned", "says so", "the one before",
	"does not want to be", "nobody is there", "who wonder", "say of", "what becomes of",
	"is not to be had", "will not do", "left as it is", "but for", "thereafter", "whereupon",
	"wants a ", "takes it for", "knows nothing of",
}

// plain reports the obscure phrases in a text.
func plain(t *testing.T, where, text string) {
	t.Helper()
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, phrase := range obscure {
		if strings.Contains(text, phrase) {
			t.Errorf("%s says %q: write subject, verb, object", where, phrase)
		}
	}
}

// TestHelpIsPlain reads the help of every command and of every flag.
func TestHelpIsPlain(t *testing.T) {
	read := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		var out bytes.Buffer
		c.SetOut(&out)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		read++
		plain(t, c.CommandPath()+" --help", out.String())
		plain(t, c.CommandPath(), c.Short)
		c.Flags().VisitAll(func(f *pflag.Flag) { plain(t, c.CommandPath()+" --"+f.Name, f.Usage) })
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
	if read < 20 {
		t.Errorf("only %d commands were read", read)
	}
}

// TestPagesArePlain reads the guide, README.md, the changelog and the texts of the API.
func TestPagesArePlain(t *testing.T) {
	pages := []string{"README.md", "CHANGELOG.md", "httpapi/openapi.json"}
	for _, name := range guidePages(t, guideFolder) {
		pages = append(pages, guideFolder+"/"+name)
	}
	for _, page := range pages {
		b, err := os.ReadFile("../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		plain(t, page, string(b))
	}
}

// TestErrorsArePlain reads the errors of command lines that are wrong.
func TestErrorsArePlain(t *testing.T) {
	nothing := t.TempDir()
	for _, args := range [][]string{
		{"backup"},
		{"backup", "--server", "http://127.0.0.1:1", "there"},
		{"backup", "--data-dir", nothing + "/none", nothing + "/copy"},
		{"bench", "--rate", "0"},
		{"bench", "--burst", "5", "--rate", "5"},
		{"bench", "--burst", "-1"},
		{"bench", "--spread", "1s"},
		{"bench", "--targets", "0"},
		{"export", "--history"},
		{"export", "--server", "http://127.0.0.1:1", "--data-dir", nothing},
		{"export", "--data-dir", nothing + "/none"},
		{"export", "--mysql-dsn", "u@tcp(127.0.0.1:1)/d"},
		{"import", "--from-crontab", "a", "--from-xtimer-mysql", "b"},
		{"import", "--from-crontab", "a"},
		{"import", "--from-crontab", "a", "--time-zone", "UTC"},
		{"preview", "61 * * * *"},
		{"preview", "@reboot"},
		{"preview", "* * W * *"},
		{"preview", "* * *"},
		{"preview", "TZ=UTC * * * * *"},
		{"preview", "0 0 * * *", "--time-zone", "Mars/Olympus"},
		{"preview", "0 0 * * *", "--n", "0"},
		{"restore", nothing},
		{"serve", "--listen", "0.0.0.0:0", "--data-dir", nothing},
		{"serve", "--max-calls", "0"},
		{"serve", "--history-sample", "2"},
		{"serve", "--redis-sentinel", "m"},
		{"serve", "--egress-deny", "10.0.0.1/8"},
		{"verify", "--from", "soon"},
		{"verify", "--from", "1h", "--late", "-1s"},
		{"verify", "--from", "1h", "--data-dir", nothing + "/none"},
	} {
		root := newRoot()
		root.SetArgs(args)
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		err := root.ExecuteContext(t.Context())
		if err == nil {
			t.Errorf("xtimer %s: no error", strings.Join(args, " "))
			continue
		}
		plain(t, "xtimer "+strings.Join(args, " "), err.Error()+"\n"+out.String())
	}
}

// texts are functions whose arguments, and fields whose values, are texts of errors.
var (
	textFunctions = []string{"Errorf", "New", "Usage", "NotFound", "Invalid", "invalid", "malformed", "badField", "forbidden", "fail", "worthf", "unusablef"}
	textFields    = []string{"Detail", "detail", "Error", "Short", "Long"}
)

// TestErrorTextsArePlain reads the texts of all errors of the program in its source: those
// that no test provokes as well.
func TestErrorTextsArePlain(t *testing.T) {
	read := 0
	root := os.DirFS("../..")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains([]string{"bench", "testdata", "node_modules", "deploy"}, d.Name()) && name != "cmd/xtimer/bench" || strings.HasPrefix(d.Name(), ".") && name != "."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		src, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, src, 0)
		if err != nil {
			return err
		}
		literals := func(n ast.Node) {
			ast.Inspect(n, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					if text, err := strconv.Unquote(l.Value); err == nil {
						read++
						plain(t, set.Position(l.Pos()).String(), text)
					}
				}
				return true
			})
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				called := ""
				switch f := n.Fun.(type) {
				case *ast.Ident:
					called = f.Name
				case *ast.SelectorExpr:
					called = f.Sel.Name
				}
				if slices.Contains(textFunctions, called) {
					for _, arg := range n.Args {
						literals(arg)
					}
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && slices.Contains(textFields, key.Name) {
					literals(n.Value)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 800 {
		t.Errorf("only %d texts were read", read)
	}
}

package main

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// house is who may import whom of our own packages. What is not in it does not
// exist: a new package is a decision, made here. cmd/xtimer and bench see
// everything.
var house = map[string][]string{
	"xtimer/wheel":            {},
	"xtimer/engine":           {},
	"xtimer/engine/plan":      {"xtimer/engine"},
	"xtimer/engine/policy":    {"xtimer/engine", "xtimer/engine/plan"},
	"xtimer/engine/verify":    {"xtimer/engine", "xtimer/engine/plan"},
	"xtimer/engine/failpoint": {},
	"xtimer/engine/change": {
		"xtimer/engine", "xtimer/engine/plan", "xtimer/engine/policy", "xtimer/engine/failpoint", "xtimer/engine/inspect", "xtimer/engine/process", "xtimer/engine/quota", "xtimer/engine/resident",
	},
	"xtimer/engine/quota":   {"xtimer/engine", "xtimer/engine/fair", "xtimer/engine/flow", "xtimer/engine/object", "xtimer/engine/resident"},
	"xtimer/engine/process": {"xtimer/engine"},
	"xtimer/engine/cluster": {"xtimer/engine"},
	"xtimer/engine/flow":    {"xtimer/engine"},
	"xtimer/engine/allot":   {"xtimer/engine", "xtimer/engine/fair", "xtimer/engine/flow"},
	"xtimer/engine/object":  {"xtimer/engine"},
	"xtimer/engine/alert":   {"xtimer/engine", "xtimer/engine/flow", "xtimer/engine/object", "xtimer/engine/process", "xtimer/engine/secret"},
	"xtimer/httpapi/notify": {"xtimer/engine/alert"},
	"xtimer/engine/fair":    {"xtimer/engine/flow"},
	"xtimer/engine/limit":   {"xtimer/engine", "xtimer/engine/fair", "xtimer/engine/flow", "xtimer/engine/object", "xtimer/engine/resident"},
	"xtimer/engine/secret":  {"xtimer/engine", "xtimer/engine/object"},
	"xtimer/engine/batch":   {"xtimer/engine", "xtimer/engine/fair", "xtimer/engine/resident"},
	"xtimer/engine/inspect": {
		"xtimer/engine", "xtimer/engine/plan", "xtimer/engine/policy", "xtimer/engine/verify", "xtimer/engine/fair", "xtimer/engine/flow", "xtimer/engine/process", "xtimer/engine/resident",
	},
	"xtimer/engine/resident": {"xtimer/engine", "xtimer/engine/plan", "xtimer/engine/policy", "xtimer/engine/failpoint", "xtimer/engine/fair", "xtimer/engine/flow", "xtimer/engine/process", "xtimer/wheel"},
	"xtimer/engine/resume":   {"xtimer/engine", "xtimer/engine/inspect", "xtimer/engine/plan", "xtimer/engine/policy", "xtimer/engine/process", "xtimer/engine/resident"},
	"xtimer/engine/scheduler": {
		"xtimer/engine", "xtimer/engine/allot", "xtimer/engine/batch", "xtimer/engine/change", "xtimer/engine/cluster", "xtimer/engine/plan", "xtimer/engine/policy", "xtimer/engine/failpoint", "xtimer/engine/fair", "xtimer/engine/flow", "xtimer/engine/inspect", "xtimer/engine/limit", "xtimer/engine/object", "xtimer/engine/process", "xtimer/engine/quota", "xtimer/engine/resident", "xtimer/engine/resume", "xtimer/wheel",
	},
	"xtimer/wal/disk": {},
	"xtimer/wal":      {"xtimer/engine", "xtimer/engine/failpoint", "xtimer/wal/disk"},
	"xtimer/httpapi": {
		"xtimer/engine", "xtimer/engine/alert", "xtimer/engine/change", "xtimer/engine/cluster", "xtimer/engine/plan", "xtimer/engine/verify", "xtimer/engine/fair", "xtimer/engine/flow", "xtimer/engine/inspect", "xtimer/engine/limit", "xtimer/engine/object", "xtimer/engine/quota", "xtimer/engine/scheduler", "xtimer/engine/secret",
		"xtimer/httpapi/access", "xtimer/httpapi/conn", "xtimer/httpapi/nodes", "xtimer/httpapi/paths", "xtimer/httpapi/problem", "xtimer/httpapi/wire",
	},
	"xtimer/httpapi/access":   {"xtimer/httpapi/conn", "xtimer/httpapi/problem"},
	"xtimer/httpapi/conn":     {"xtimer/engine", "xtimer/httpapi/problem"},
	"xtimer/httpapi/nodes":    {"xtimer/engine", "xtimer/engine/cluster", "xtimer/engine/flow", "xtimer/httpapi/access"},
	"xtimer/httpapi/paths":    {"xtimer/httpapi/problem"},
	"xtimer/httpapi/problem":  {"xtimer/engine", "xtimer/httpapi/wire"},
	"xtimer/httpapi/callback": {"xtimer/engine", "xtimer/engine/plan", "xtimer/engine/failpoint", "xtimer/httpapi/wire"},
	"xtimer/httpapi/wire":     {"xtimer/engine", "xtimer/engine/alert", "xtimer/engine/flow", "xtimer/engine/plan", "xtimer/engine/inspect", "xtimer/engine/quota"},
	"xtimer/tier/local":       {"xtimer/engine", "xtimer/engine/policy", "xtimer/engine/failpoint", "xtimer/wal/disk"},
	"xtimer/tier/memory":      {"xtimer/engine", "xtimer/engine/policy"},
	"xtimer/tier/mysql":       {"xtimer/engine", "xtimer/engine/policy"},
	"xtimer/tier/redis":       {"xtimer/engine"},
	"xtimer/tier/tiertest":    {"xtimer/engine"},
	"xtimer/tier/servertest":  {},
	"xtimer/bench/checker":    {},
	"xtimer/bench/target":     {},
	"xtimer/bench/simulator":  {"*"},
	"xtimer/httpapi/console":  {"xtimer/httpapi/client", "xtimer/httpapi/console/alerts", "xtimer/httpapi/console/waterfall", "xtimer/httpapi/console/words"},

	"xtimer/httpapi/console/words": {"xtimer/httpapi/client"},

	"xtimer/httpapi/console/alerts":    {"xtimer/httpapi/client"},
	"xtimer/httpapi/console/waterfall": {"xtimer/httpapi/client", "xtimer/httpapi/console/words"},

	"xtimer/httpapi/clienttest": {},

	"xtimer/cmd/xtimer":          {"*"},
	"xtimer/cmd/xtimer/bench":    {"xtimer/cmd/xtimer/exit", "xtimer/cmd/xtimer/remote", "xtimer/cmd/xtimer/span", "xtimer/cmd/xtimer/terminal"},
	"xtimer/cmd/xtimer/contexts": {"xtimer/cmd/xtimer/exit", "xtimer/cmd/xtimer/remote", "xtimer/cmd/xtimer/terminal", "xtimer/httpapi/client"},
	"xtimer/cmd/xtimer/definition": {
		"xtimer/cmd/xtimer/document", "xtimer/cmd/xtimer/exit", "xtimer/cmd/xtimer/terminal", "xtimer/engine", "xtimer/httpapi/client",
	},
	"xtimer/cmd/xtimer/document":    {},
	"xtimer/cmd/xtimer/exit":        {"xtimer/httpapi/client"},
	"xtimer/cmd/xtimer/figures":     {"xtimer/cmd/xtimer/exit", "xtimer/cmd/xtimer/remote", "xtimer/cmd/xtimer/span", "xtimer/cmd/xtimer/terminal", "xtimer/httpapi/client"},
	"xtimer/cmd/xtimer/golden":      {},
	"xtimer/cmd/xtimer/machine":     {},
	"xtimer/cmd/xtimer/remote":      {"xtimer/cmd/xtimer/exit", "xtimer/cmd/xtimer/span", "xtimer/cmd/xtimer/terminal", "xtimer/httpapi/client"},
	"xtimer/cmd/xtimer/clusterdemo": {"xtimer/cmd/xtimer/remote", "xtimer/engine"},
	"xtimer/cmd/xtimer/alert":       {"xtimer/cmd/xtimer/exit", "xtimer/cmd/xtimer/remote", "xtimer/cmd/xtimer/span", "xtimer/cmd/xtimer/terminal", "xtimer/httpapi/client"},
	"xtimer/cmd/xtimer/flow":        {"xtimer/cmd/xtimer/exit", "xtimer/cmd/xtimer/remote", "xtimer/cmd/xtimer/span", "xtimer/cmd/xtimer/terminal", "xtimer/engine/flow", "xtimer/httpapi/client"},
	"xtimer/cmd/xtimer/secret":      {"xtimer/cmd/xtimer/exit", "xtimer/cmd/xtimer/remote", "xtimer/cmd/xtimer/terminal", "xtimer/httpapi/client"},
	"xtimer/cmd/xtimer/settings":    {"xtimer/cmd/xtimer/document", "xtimer/cmd/xtimer/span", "xtimer/engine", "xtimer/engine/plan", "xtimer/httpapi", "xtimer/httpapi/access"},
	"xtimer/cmd/xtimer/span":        {"xtimer/engine"},
	"xtimer/cmd/xtimer/store": {
		"xtimer/cmd/xtimer/machine", "xtimer/cmd/xtimer/settings",
		"xtimer/engine", "xtimer/engine/object", "xtimer/engine/scheduler", "xtimer/engine/secret", "xtimer/httpapi", "xtimer/tier/local", "xtimer/tier/memory", "xtimer/tier/mysql", "xtimer/tier/redis", "xtimer/wal/disk",
	},
	"xtimer/cmd/xtimer/task":     {"xtimer/cmd/xtimer/exit", "xtimer/cmd/xtimer/remote", "xtimer/cmd/xtimer/span", "xtimer/cmd/xtimer/terminal", "xtimer/httpapi/client"},
	"xtimer/cmd/xtimer/terminal": {},
	"xtimer/cmd/xtimer/timer": {
		"xtimer/cmd/xtimer/definition", "xtimer/cmd/xtimer/document", "xtimer/cmd/xtimer/exit", "xtimer/cmd/xtimer/remote", "xtimer/cmd/xtimer/span", "xtimer/cmd/xtimer/terminal", "xtimer/httpapi/client",
	},
	"xtimer/cmd/xtimer/transfer": {
		"xtimer/cmd/xtimer/definition", "xtimer/cmd/xtimer/document", "xtimer/cmd/xtimer/exit", "xtimer/cmd/xtimer/remote", "xtimer/cmd/xtimer/settings", "xtimer/cmd/xtimer/span",
		"xtimer/cmd/xtimer/store", "xtimer/cmd/xtimer/terminal", "xtimer/cmd/xtimer/timer",
		"xtimer/engine", "xtimer/engine/plan", "xtimer/engine/policy", "xtimer/engine/scheduler", "xtimer/httpapi/client", "xtimer/tier/local", "xtimer/tier/memory", "xtimer/tier/mysql", "xtimer/wal", "xtimer/wal/disk",
	},

	"xtimer/bench": {"*"},
}

// modulePrefix begins the path of each of our packages. make module changes the path of
// the module, and these paths with it.
var modulePrefix = strings.TrimSuffix("xtimer/cmd/xtimer", "cmd/xtimer")

// testsToo is what tests may import besides: the suite of a tier's promises,
// the tier that serves for both in tests, servers of a test's own, and golden files.
var testsToo = []string{"xtimer/cmd/xtimer/golden", "xtimer/tier/tiertest", "xtimer/tier/memory", "xtimer/tier/servertest"}

// owners has for each library the folders that may import it; the rest of the
// program speaks our own words. bench measures peers and clients too.
var owners = map[string]struct {
	folders []string
	reason  string
}{
	"github.com/RussellLuo/timingwheel":  {[]string{"wheel"}, "the clockwork is disposable: only the wheel knows that there is one"},
	"github.com/robfig/cron/v3":          {[]string{"engine/plan"}, "it panics and spins on bad input: engine/plan/cronspec.go guards it"},
	"github.com/cockroachdb/pebble/v2":   {[]string{"wal/disk", "wal", "tier/local", "tier/tiertest", "bench/simulator"}, "how bytes reach the disk is the business of the journal and the cold tier, and of what breaks it for them"},
	"github.com/RaduBerinde/btreemap":    {[]string{"tier/memory"}, "order is the business of a tier"},
	"github.com/go-sql-driver/mysql":     {[]string{"tier/mysql"}, "only the MySQL tier speaks SQL"},
	"database/sql":                       {[]string{"tier/mysql"}, "only the MySQL tier speaks SQL"},
	"github.com/redis/go-redis/v9":       {[]string{"tier/redis"}, "only the Redis tier speaks to Redis"},
	"github.com/valyala/fasthttp":        {[]string{"httpapi", "httpapi/access", "httpapi/callback", "httpapi/conn", "httpapi/paths", "httpapi/problem", "bench"}, "HTTP ends at the edge"},
	"github.com/go-json-experiment/json": {[]string{"httpapi/wire", "bench"}, "JSON ends at the edge"},
	"github.com/standard-webhooks":       {[]string{"httpapi/callback"}, "signing is the callback's business"},
	"github.com/spf13/cobra":             {[]string{"cmd/xtimer", "cmd/xtimer/remote", "cmd/xtimer/timer", "cmd/xtimer/task", "cmd/xtimer/bench", "cmd/xtimer/clusterdemo", "cmd/xtimer/contexts", "cmd/xtimer/figures", "cmd/xtimer/alert", "cmd/xtimer/flow", "cmd/xtimer/secret", "cmd/xtimer/settings", "cmd/xtimer/transfer"}, "flags live in cmd"},
	"github.com/spf13/pflag":             {[]string{"cmd/xtimer", "cmd/xtimer/remote"}, "cobra's flags are enough, except for what is said about wrong ones"},
	"go.yaml.in/yaml/v3":                 {[]string{"cmd/xtimer", "cmd/xtimer/definition", "cmd/xtimer/document", "cmd/xtimer/remote", "cmd/xtimer/settings", "cmd/xtimer/terminal", "cmd/xtimer/transfer"}, "files for people are read and written in cmd"},
	"github.com/rivo/uniseg":             {[]string{"cmd/xtimer/terminal"}, "how wide a text is on a screen is the business of what prints tables"},
	"github.com/wneessen/go-mail":        {[]string{"httpapi/notify"}, "mails are messages of alerts"},
	"github.com/emersion":                {nil, "it is for tests of mails"},
	"github.com/VictoriaMetrics/metrics": {[]string{"*"}, ""},
	"golang.org/x/sys":                   {[]string{"wheel", "wal", "tier/local", "httpapi/callback", "cmd/xtimer", "bench"}, "the engine knows no operating system"},
	"pgregory.net/rapid":                 {[]string{"tier/tiertest"}, "it is for tests, and the suite of a tier is one"},
	"github.com/chromedp":                {nil, "it is for tests of the console"},
	"go.uber.org/goleak":                 {nil, "it is for tests"},
	"github.com/alicebob/miniredis/v2":   {nil, "it is for tests"},
}

// topLevel is what may lie at the top of the repository.
var topLevel = strings.Fields(`engine wheel tier wal httpapi bench cmd deploy docs
	go.mod go.sum go.work go.work.sum Makefile README.md README.zh-CN.md LICENSE CHANGELOG.md .ci .gitignore .gitattributes`)

type pkg struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func listPackages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = "../.."
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var ps []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return ps
		}
		if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
}

// TestImports holds the house: one direction between our packages, one owner
// for each library.
func TestImports(t *testing.T) {
	for _, p := range listPackages(t) {
		allowed, ok := house[p.ImportPath]
		if !ok {
			t.Errorf("%s: no such room in the house; if it is needed, say in house what it may import", p.ImportPath)
			continue
		}
		mayImport := func(to string, extra ...string) bool {
			return slices.Contains(allowed, "*") || slices.Contains(allowed, to) || slices.Contains(extra, to) || to == p.ImportPath
		}
		for _, to := range p.Imports {
			if strings.HasPrefix(to, modulePrefix) && !mayImport(to) {
				t.Errorf("%s imports %s; it may import %v only: a need for more is a sign that a word belongs into engine, or the wiring into cmd/xtimer",
					p.ImportPath, to, allowed)
			}
			checkOwner(t, p.ImportPath, to)
		}
		for _, to := range slices.Concat(p.TestImports, p.XTestImports) {
			// The engine, and the API over it with what speaks to it, are tested on the real tiers, as they run.
			whole := strings.HasPrefix(p.ImportPath, "xtimer/engine/") || strings.HasPrefix(p.ImportPath, "xtimer/httpapi")
			if strings.HasPrefix(to, modulePrefix) && !whole && !mayImport(to, testsToo...) {
				t.Errorf("%s: a test imports %s; in tests too, packages import only their neighbours of house and %v", p.ImportPath, to, testsToo)
			}
		}
	}
}

func checkOwner(t *testing.T, from, library string) {
	t.Helper()
	if strings.HasPrefix(library, modulePrefix) || !strings.Contains(library, ".") && library != "database/sql" {
		return // ours, or the standard library
	}
	for prefix, o := range owners {
		if library != prefix && !strings.HasPrefix(library, prefix+"/") {
			continue
		}
		if !slices.Contains(o.folders, "*") && !slices.Contains(o.folders, strings.TrimPrefix(from, modulePrefix)) {
			t.Errorf("%s imports %s, which belongs to %v: %s", from, library, o.folders, o.reason)
		}
		return
	}
	t.Errorf("%s imports %s, which has no owner: say in owners whose it is", from, library)
}

// TestTopLevel keeps the first look at the repository short.
func TestTopLevel(t *testing.T) {
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("this is no git checkout: %v", err)
	}
	for f := range strings.Lines(string(out)) {
		f = strings.TrimSpace(f)
		if top, _, _ := strings.Cut(f, "/"); !slices.Contains(topLevel, top) {
			t.Errorf("%s: %q has no place at the top level", f, top)
		}
		for _, name := range []string{"internal", "common", "util", "utils", "model", "models", "pkg"} {
			if slices.Contains(strings.Split(path.Dir(f), "/"), name) {
				t.Errorf("%s: %q says nothing about what is in it", f, name)
			}
		}
	}
}

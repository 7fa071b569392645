package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// rename gives the checkout in the folder source the module path to. The main module
// requires its client at the version.
func rename(source, to, version string) error {
	if err := module.Check(to, version); err != nil {
		return fmt.Errorf("the path or the version is wrong: %w", err)
	}
	if _, major, ok := module.SplitPathVersion(to); !ok || major != "" {
		return fmt.Errorf("the path %s ends in a major version: only v0 and v1 are supported", to)
	}
	from, err := modulePath(source)
	if err != nil {
		return err
	}
	files, err := tracked(source)
	if err != nil {
		return err
	}
	packages := packagePaths(from, files)
	for _, name := range files {
		if err := rewrite(filepath.Join(source, name), name, packages, from, to, version); err != nil {
			return fmt.Errorf("rewriting %s: %w", name, err)
		}
	}
	client := to + "/httpapi/client"
	if err := require(filepath.Join(source, "go.mod"), to, client, version); err != nil {
		return fmt.Errorf("requiring the client: %w", err)
	}
	return writeWorkspaces(source, client, version)
}

func modulePath(source string) (string, error) {
	b, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("reading the path of the module: %w", err)
	}
	return modfile.ModulePath(b), nil
}

// tracked are the files that git knows, without symbolic links and without the passages
// that this command looks for.
func tracked(source string) ([]string, error) {
	out, err := exec.Command("git", "-C", source, "ls-files", "-z").Output()
	if err != nil {
		return nil, fmt.Errorf("listing the files of the checkout: %w", err)
	}
	files := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	return slices.DeleteFunc(files, func(name string) bool {
		info, err := os.Lstat(filepath.Join(source, name))
		return err != nil || !info.Mode().IsRegular() || name == instructionsFile
	}), nil
}

// packagePaths matches the path of a package of the module with the byte before. The
// folders of packages are named, so that the header "User-Agent: xtimer/1.2.3" stays.
func packagePaths(from string, files []string) *regexp.Regexp {
	var folders []string
	for _, name := range files {
		if top, _, deep := strings.Cut(name, "/"); deep && strings.HasSuffix(name, ".go") {
			folders = append(folders, regexp.QuoteMeta(top))
		}
	}
	slices.Sort(folders)
	folders = slices.Compact(folders)
	return regexp.MustCompile(`(^|[^\w./-])` + regexp.QuoteMeta(from) + `/(` + strings.Join(folders, "|") + `)\b`)
}

func rewrite(file, name string, packages *regexp.Regexp, from, to, version string) error {
	old, err := os.ReadFile(file)
	if err != nil || bytes.IndexByte(old, 0) >= 0 {
		return err
	}
	text, err := withInstructions(name, string(old), from, to, version)
	if err != nil {
		return err
	}
	now := packages.ReplaceAll([]byte(text), []byte("${1}"+to+"/${2}"))
	if bytes.Equal(old, now) {
		return nil
	}
	if strings.HasSuffix(name, ".go") {
		if now, err = format.Source(now); err != nil { // sorts the imports
			return err
		}
	}
	return os.WriteFile(file, now, 0o644) // an existing file keeps its mode
}

// require names the main module, and has it require the client from its public path:
// go install refuses a module with a replacement.
func require(file, to, client, version string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	f, err := modfile.Parse(file, b, nil)
	if err != nil {
		return err
	}
	if err := f.AddModuleStmt(to); err != nil {
		return err
	}
	if err := f.AddRequire(client, version); err != nil {
		return err
	}
	if err := f.DropReplace(client, ""); err != nil {
		return err
	}
	f.SortBlocks()
	f.Cleanup()
	if b, err = f.Format(); err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o644)
}

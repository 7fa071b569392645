package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// library is a Go module that is part of the program.
type library struct {
	Path, Version, Dir string
	Replace            *struct{ Path string }
}

// legal matches the names of files that a copy of the program must carry.
var legal = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents)([-._].*)?$`)

// libraries are the modules that are compiled into the program for any target, by path.
func (r *release) libraries() ([]library, error) {
	found := map[string]library{}
	for _, t := range r.targets {
		out, err := os.CreateTemp(r.stage, "modules")
		if err != nil {
			return nil, err
		}
		defer out.Close()
		if err := r.goTool(t, out, "list", "-deps", "-json=Module", "./cmd/xtimer"); err != nil {
			return nil, fmt.Errorf("listing the modules for %s: %w", t, err)
		}
		if _, err := out.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		for d := json.NewDecoder(out); ; {
			var p struct {
				Module *struct {
					library
					Main bool
				}
			}
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if p.Module != nil && !p.Module.Main {
				found[p.Module.Path] = p.Module.library
			}
		}
	}
	byPath := func(a, b library) int { return strings.Compare(a.Path, b.Path) }
	return slices.SortedFunc(maps.Values(found), byPath), nil
}

// writeNotices writes the licences of all that is compiled into the program: the
// modules, Go itself and the scripts of the console.
func (r *release) writeNotices() error {
	libraries, err := r.libraries()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString("xtimer contains the following works of others, under the licences that follow each.\n")
	add := func(title, file string) error {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "\n%s\n%s (%s)\n\n%s\n", strings.Repeat("=", 80), title, filepath.Base(file), bytes.TrimSpace(text))
		return nil
	}
	root, err := r.goEnvironment("GOROOT")
	if err != nil {
		return err
	}
	if err := add("Go", filepath.Join(root, "LICENSE")); err != nil {
		return err
	}
	scripts, err := filepath.Glob(filepath.Join(r.source, "httpapi/console/assets/*.LICENSE"))
	if err != nil {
		return err
	}
	for _, file := range scripts {
		if err := add(strings.TrimSuffix(filepath.Base(file), ".LICENSE"), file); err != nil {
			return err
		}
	}
	for _, l := range libraries {
		files, err := legalFiles(l.Dir)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return fmt.Errorf("%s has no licence in %s", l.Path, l.Dir)
		}
		for _, file := range files {
			if err := add(l.Path+" "+l.Version, file); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(r.stage, "NOTICES"), b.Bytes(), 0o644)
}

// legalFiles are the licences at the top of a module.
func legalFiles(dir string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() && legal.MatchString(e.Name()) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, err
}

// goEnvironment asks the Go tool for a setting.
func (r *release) goEnvironment(name string) (string, error) {
	out, err := os.CreateTemp(r.stage, "environment")
	if err != nil {
		return "", err
	}
	defer out.Close()
	if err := r.goTool(host(), out, "env", name); err != nil {
		return "", fmt.Errorf("go env %s: %w", name, err)
	}
	b, err := os.ReadFile(out.Name())
	return strings.TrimSpace(string(b)), err
}

package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// writePackages writes a .deb and an .rpm for each target of Linux, as
// deploy/packages/nfpm.yaml describes them.
func (r *release) writePackages() error {
	if err := r.writePackaged(); err != nil {
		return err
	}
	for _, t := range r.targets {
		if t.system != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			if err := r.writePackage(t, format); err != nil {
				return fmt.Errorf("%s for %s: %w", format, t, err)
			}
		}
	}
	return nil
}

// writePackaged writes the files that only packages have: texts compressed, and
// the unit with the paths of a package.
func (r *release) writePackaged() error {
	if err := os.Mkdir(filepath.Join(r.stage, "man.gz"), 0o755); err != nil {
		return err
	}
	pages, err := filesOf("man.gz", filepath.Join(r.stage, "man"))
	if err != nil {
		return err
	}
	pages = append(pages, file{name: "NOTICES", from: filepath.Join(r.stage, "NOTICES")},
		file{name: "changelog", from: filepath.Join(r.source, "CHANGELOG.md")})
	for _, p := range pages {
		text, err := os.ReadFile(p.from)
		if err != nil {
			return err
		}
		if err := writeCompressed(filepath.Join(r.stage, p.name+".gz"), text); err != nil {
			return err
		}
	}
	changes := fmt.Sprintf("xtimer (%s-1) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- xtimer maintainers <maintainers@xtimer.invalid>  %s\n",
		strings.Replace(r.version, "-", "~", 1), r.date.Format("Mon, 02 Jan 2006 15:04:05 -0700"))
	if err := writeCompressed(filepath.Join(r.stage, "changelog.Debian.gz"), []byte(changes)); err != nil {
		return err
	}

	unit, err := os.ReadFile(filepath.Join(r.source, "deploy/xtimer.service"))
	if err != nil {
		return err
	}
	_, after, found := bytes.Cut(unit, []byte("\n\n")) // the first lines say how to install it
	if !found {
		return fmt.Errorf("deploy/xtimer.service has changed its form")
	}
	after = bytes.ReplaceAll(after, []byte("/usr/local/"), []byte("/usr/"))
	return os.WriteFile(filepath.Join(r.stage, "xtimer.service"), after, 0o644)
}

func (r *release) writePackage(t target, format string) error {
	folder := filepath.Join(r.source, "deploy/packages")
	variables := map[string]string{
		"ARCH": t.processor, "VERSION": r.version, "STAGE": r.stage, "SOURCE": r.source, "PROGRAM": r.program(t),
	}
	config, err := nfpm.ParseFileWithEnvMapping(filepath.Join(folder, "nfpm.yaml"), func(name string) string { return variables[name] })
	if err != nil {
		return err
	}
	info, err := config.Get(format)
	if err != nil {
		return err
	}
	info = nfpm.WithDefaults(info)
	info.MTime = r.date
	for _, script := range []*string{&info.Scripts.PostInstall, &info.Scripts.PreRemove, &info.Scripts.PostRemove} {
		*script = filepath.Join(folder, *script)
	}
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	return writeTo(filepath.Join(r.out, packager.ConventionalFileName(info)), func(out io.Writer) error {
		return packager.Package(info, out)
	})
}

// writeCompressed writes a file with gzip, without the time of the compression.
func writeCompressed(to string, text []byte) error {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, b.Bytes(), 0o644)
}

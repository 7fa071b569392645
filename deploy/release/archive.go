package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"
)

// file is an entry of an archive.
type file struct {
	name string // in the archive
	from string // on this machine
	mode int64
}

// writeArchives writes a tar file for each target: the program, its manual and
// completions, the licences, and on Linux the unit of systemd.
func (r *release) writeArchives() error {
	for _, t := range r.targets {
		files := []file{
			{"xtimer", r.program(t), 0o755},
			{"LICENSE", filepath.Join(r.source, "LICENSE"), 0o644},
			{"NOTICES", filepath.Join(r.stage, "NOTICES"), 0o644},
			{"README.md", filepath.Join(r.source, "README.md"), 0o644},
			{"CHANGELOG.md", filepath.Join(r.source, "CHANGELOG.md"), 0o644},
		}
		if t.system == "linux" {
			files = append(files, file{"xtimer.service", filepath.Join(r.source, "deploy/xtimer.service"), 0o644})
		}
		for _, dir := range []string{"completions", "man"} {
			more, err := filesOf(dir, filepath.Join(r.stage, dir))
			if err != nil {
				return err
			}
			files = append(files, more...)
		}
		name := fmt.Sprintf("xtimer-%s-%s", r.version, t)
		if err := writeTar(filepath.Join(r.out, name+".tar.gz"), name, files, r.date); err != nil {
			return err
		}
	}
	return nil
}

// filesOf are the files of a folder, under a name.
func filesOf(name, dir string) (files []file, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		files = append(files, file{path.Join(name, e.Name()), filepath.Join(dir, e.Name()), 0o644})
	}
	return files, err
}

// writeTar writes a compressed tar file with one folder at its top.
func writeTar(to, top string, files []file, date time.Time) error {
	return writeTo(to, func(out io.Writer) error {
		compressed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
		if err != nil {
			return err
		}
		if err := writeEntries(compressed, top, files, date); err != nil {
			return err
		}
		return compressed.Close()
	})
}

// writeEntries writes a tar file. All entries have the same time and belong to root.
func writeEntries(to io.Writer, top string, files []file, date time.Time) error {
	archive := tar.NewWriter(to)
	for _, f := range files {
		if err := addFile(archive, path.Join(top, f.name), f, date); err != nil {
			return fmt.Errorf("adding %s: %w", f.name, err)
		}
	}
	return archive.Close()
}

// writeTo creates a file and has write fill it.
func writeTo(name string, write func(io.Writer) error) error {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(out), out.Close())
}

func addFile(archive *tar.Writer, name string, f file, date time.Time) error {
	in, err := os.Open(f.from)
	if err != nil {
		return err
	}
	defer in.Close()
	about, err := in.Stat()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: f.mode, Size: about.Size(), ModTime: date, Uname: "root", Gname: "root"}
	if err := archive.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(archive, in)
	return err
}

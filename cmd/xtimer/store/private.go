package store

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"xtimer/engine/scheduler"
)

// forOthers are the permissions of other users. They have none in a data directory,
// which holds the headers and bodies of all callbacks.
const forOthers = 0o077

// keepPrivate makes a data directory readable by its user only: the files that
// this process makes from now on, and those that are there with wider modes, in
// the journal and the cold store. The directory itself is left alone while it
// holds anything that is not ours: it may be somebody's home. One line of the log
// says what was mended.
func keepPrivate(dataDir string) {
	syscall.Umask(forOthers)
	var mended int
	var failed []error
	mend := func(path string, i fs.FileInfo, err error) {
		if err == nil && i.Mode().Perm()&forOthers != 0 && (i.IsDir() || i.Mode().IsRegular()) {
			mended++
			err = os.Chmod(path, i.Mode().Perm()&^forOthers)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, err)
		}
	}
	dirs := []string{filepath.Join(dataDir, scheduler.JournalFolder), filepath.Join(dataDir, scheduler.ColdFolder)}
	if onlyOurs(dataDir) {
		dirs = append(dirs, dataDir)
	}
	for _, dir := range dirs {
		i, err := os.Stat(dir)
		mend(dir, i, err)
		es, _ := os.ReadDir(dir) // a folder that is missing has nothing to mend
		for _, e := range es {
			if e.Type().IsRegular() {
				i, err := e.Info()
				mend(filepath.Join(dir, e.Name()), i, err)
			}
		}
	}
	switch {
	case len(failed) > 0:
		slog.Warn("other users can read the data directory, and its mode cannot be changed", "data_dir", dataDir, "error", errors.Join(failed...))
	case mended > 0:
		slog.Warn("other users could read the data directory; now only its owner can", "data_dir", dataDir, "changed", mended)
	}
}

// OperationsFolder is the folder of bulk operations that go on after a restart.
const OperationsFolder = "operations"

// onlyOurs reports whether a data directory holds nothing but what xtimer makes.
func onlyOurs(dataDir string) bool {
	es, err := os.ReadDir(dataDir)
	return err == nil && !slices.ContainsFunc(es, func(e os.DirEntry) bool {
		return !slices.Contains([]string{LockName, RestoringFolder, cursorKeyName, identityName, OperationsFolder, scheduler.JournalFolder, scheduler.ColdFolder}, e.Name())
	})
}

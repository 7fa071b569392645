package disk

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The process ends soon after its folder was moved or deleted, and what has taken its place
// stays as it is. The folder that was moved has all that was acknowledged.
func TestMovedFolder(t *testing.T) {
	for _, x := range []struct {
		name string
		move func(dir, to string) error // of the folder, with the one above it
	}{
		{"moved", func(dir, to string) error { return os.Rename(dir, to) }},
		{"moved with the folder above it", func(dir, to string) error { return os.Rename(filepath.Dir(dir), to) }},
		{"replaced", func(dir, to string) error {
			if err := os.Rename(dir, to); err != nil {
				return err
			}
			return os.Mkdir(dir, 0o700)
		}},
		{"another store in its place", func(dir, to string) error {
			if err := os.Rename(dir, to); err != nil {
				return err
			}
			if err := os.Mkdir(dir, 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, lockName), nil, 0o600)
		}},
		{"deleted", func(dir, _ string) error { return os.RemoveAll(dir) }},
	} {
		for _, how := range []string{"at rest", "before the next file"} {
			t.Run(x.name+", "+how, func(t *testing.T) {
				t.Parallel()
				top := t.TempDir()
				cfg := quiet(t, vfs.Default)
				cfg.Dir = filepath.Join(top, "data", "store")
				var said bytes.Buffer
				cfg.stderr = &said
				ended := make(chan int, 1)
				cfg.Exit = func(code int) { ended <- code }
				o := open(t, cfg)
				o.commit()
				if err := x.move(cfg.Dir, filepath.Join(top, "moved")); err != nil {
					t.Fatal(err)
				}
				if how != "at rest" {
					go o.DB.Flush() // it creates a table and a log, and never returns
				}
				select {
				case code := <-ended:
					if code != exitCode || !strings.Contains(said.String(), "the folder was moved, deleted or replaced") {
						t.Errorf("status %d: %s", code, said.String())
					}
				case <-time.After(time.Minute):
					t.Fatal("the process goes on")
				}
				found, _ := os.ReadDir(cfg.Dir)
				for _, f := range found {
					if f.Name() != lockName {
						t.Errorf("%s was created in the folder that has taken its place", f.Name())
					}
				}
			})
		}
	}
}

// A folder that is moved and put back at once is as it was.
func TestFolderThatComesBack(t *testing.T) {
	cfg := quiet(t, vfs.Default)
	cfg.Dir = filepath.Join(t.TempDir(), "store")
	o := open(t, cfg)
	o.commit()
	away := cfg.Dir + "-moved"
	for range 2 {
		if o.isMoved() {
			t.Error("the folder has moved, though it has its name")
		}
		if err := os.Rename(cfg.Dir, away); err != nil {
			t.Fatal(err)
		}
		if !o.isMoved() {
			t.Error("the folder has not moved, though it has another name")
		}
		if err := os.Rename(away, cfg.Dir); err != nil {
			t.Fatal(err)
		}
	}
	o.close()
}

package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"xtimer/tier/tiertest"
)

// A second opening of a folder is refused in words.
func TestSecondOpen(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"memory": vfs.NewMem(), "disk": vfs.Default} {
		t.Run(name, func(t *testing.T) {
			cfg := quiet(t, fs)
			cfg.Dir = t.TempDir() + "/a/b"
			o := open(t, cfg)
			defer o.close()
			if _, err := tryOpen(t, cfg); !errors.Is(err, ErrLocked) {
				t.Fatalf("%v", err)
			}
		})
	}
}

// A store of an older format of Pebble opens with all that is in it.
func TestOlderFormat(t *testing.T) {
	fs := vfs.NewMem()
	old, err := pebble.Open("/data/store", &pebble.Options{FS: fs, FormatMajorVersion: pebble.FormatMinSupported})
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Set(counter, []byte("\x00\x00\x00\x00\x00\x00\x00\x07"), pebble.Sync); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	if err := createMark(fs, "/data/store", 7); err != nil {
		t.Fatal(err)
	}
	o := open(t, quiet(t, fs))
	defer o.close()
	if o.n != 7 || o.DB.FormatMajorVersion() != pebble.FormatNewest {
		t.Errorf("number %d, format %d", o.n, o.DB.FormatMajorVersion())
	}
}

// A failed sync of the log ends the process: one line of JSON on stderr, the
// same in last_fatal, status 70; and the owner was told before.
func TestFatal(t *testing.T) {
	mem := vfs.NewMem()
	var fail atomic.Bool
	cfg := quiet(t, tiertest.Watch(mem, func(op errorfs.Op) error {
		if fail.Load() && (op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSync) && strings.HasSuffix(op.Path, ".log") {
			return syscall.EIO
		}
		return nil
	}))
	var stderr bytes.Buffer
	code, why := make(chan int, 1), make(chan error, 1)
	cfg.stderr = &stderr
	cfg.Exit = func(c int) { code <- c }
	cfg.Failed = func(err error) { why <- err }
	o := open(t, cfg)
	o.commit()
	fail.Store(true)
	go func() {
		o.commit()
		t.Error("a commit whose sync failed returns")
	}()
	if err := <-why; !strings.HasPrefix(err.Error(), "/data/store: ") || !strings.Contains(err.Error(), "input/output error") {
		t.Error(err)
	}
	if c := <-code; c != 70 {
		t.Errorf("exit code %d", c)
	}
	var line struct{ Level, Part, Dir, Error string }
	if err := json.Unmarshal(stderr.Bytes(), &line); err != nil || line.Level != "ERROR" || line.Part != "store" ||
		line.Dir != "/data/store" || !strings.Contains(line.Error, "input/output error") {
		t.Errorf("%v: %s", err, stderr.Bytes())
	}
	f, err := mem.Open("/data/store/last_fatal")
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(f); !bytes.Equal(b, stderr.Bytes()) {
		t.Errorf("last_fatal: %s", b)
	}
}

// A reader of stderr that has stopped does not keep the process from its end, nor
// the file from its line.
func TestFatalOnStuckStderr(t *testing.T) {
	cfg := quiet(t, vfs.NewMem())
	_, cfg.stderr = io.Pipe()
	code := make(chan int, 1)
	cfg.Exit = func(c int) { code <- c }
	cfg.Failed = func(error) {}
	o := open(t, cfg)
	go o.Fatalf("the disk has gone")
	if c := <-code; c != 70 {
		t.Errorf("exit code %d", c)
	}
	if _, err := cfg.FS.Stat("/data/store/last_fatal"); err != nil {
		t.Error(err)
	}
}

// A disk that hangs does not keep the process from its end.
func TestFatalOnStuckDisk(t *testing.T) {
	cfg := quiet(t, tiertest.Watch(vfs.NewMem(), func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, lastFatalName) {
			select {}
		}
		return nil
	}))
	died := make(chan struct{})
	cfg.Exit = func(int) { close(died) }
	o := open(t, cfg)
	go o.Fatalf("it hangs")
	select {
	case <-died:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for its last words")
	}
}

// A disk that takes no table is asked again now and then, and not in a loop, and
// the log says so once in a while; commits go on meanwhile. (Not in a bubble of
// synctest: Pebble sleeps with a lock that the commit waits for.)
func TestFullDiskIsAskedSeldom(t *testing.T) {
	var asked atomic.Int64
	full := errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.HasSuffix(op.Path, ".sst") {
			asked.Add(1)
			return syscall.ENOSPC
		}
		return nil
	})}
	var said bytes.Buffer
	cfg := quiet(t, tiertest.Watch(vfs.NewMem(), full.MaybeError))
	cfg.Log = slog.New(slog.NewTextHandler(&said, nil))
	o := open(t, cfg)
	o.commit()
	full.On()
	flushed, err := o.DB.AsyncFlush()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	if n := asked.Load(); n == 0 || n > 50 {
		t.Errorf("it was asked %d times in a second", n)
	}
	o.commit()
	full.Off()
	<-flushed
	o.close()
	if lines := strings.Count(said.String(), "no space left"); lines == 0 || lines > 10 {
		t.Errorf("%d lines:\n%s", lines, said.String())
	}
}

// Pebble's names have no ./ before them, though the folder has.
func TestOwnFiles(t *testing.T) {
	for dir, own := range map[string][2]string{
		"/data/wal": {"/data/wal", "/data/wal/1.log"}, "./data/wal": {"./data/wal", "data/wal/1.log"}, "data/": {"data/", "data/1.log"}, ".": {".", "1.log"},
	} {
		s := FS{vfs.Default, &Folder{cfg: Config{Dir: dir}}}
		for _, name := range own {
			if !s.owns(name) {
				t.Errorf("%s is not of %s", name, dir)
			}
		}
		for _, name := range []string{"/backup/wal", "/backup/wal/1.log", "backup/data/wal/1.log", "../1.log"} {
			if s.owns(name) {
				t.Errorf("%s is of %s", name, dir)
			}
		}
	}
}

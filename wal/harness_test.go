package wal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
)

// quiet is the configuration of tests: small, silent, and on fs. A process that
// would end itself blocks its goroutine instead, which is as good as dead.
func quiet(fs vfs.FS) Config {
	return Config{
		Dir: "/data/wal", FS: fs, MemTable: 256 << 10, Logger: slog.New(slog.DiscardHandler),
		Exit: func(int) {},
	}
}

// journal is a Log that runs, with what a test does to it.
type journal struct {
	*Log
	t    testing.TB
	stop context.CancelFunc
	ran  chan error
}

func start(t testing.TB, cfg Config) *journal {
	t.Helper()
	j, err := tryStart(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func tryStart(t testing.TB, cfg Config) (*journal, error) {
	l := New(cfg)
	if err := l.Open(context.Background()); err != nil {
		return nil, err
	}
	j := &journal{Log: l, t: t}
	j.run()
	return j, nil
}

func (j *journal) run() {
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	j.stop, j.ran = cancel, ran
	go func() { ran <- j.Run(ctx) }()
}

func (j *journal) end() {
	j.t.Helper()
	j.stop()
	if err := <-j.ran; err != nil {
		j.t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		j.t.Fatal(err)
	}
}

func (j *journal) sync(p engine.Position) {
	j.t.Helper()
	if err := j.Sync(context.Background(), p); err != nil {
		j.t.Fatal(err)
	}
}

func (j *journal) replay() (r replayed) {
	j.t.Helper()
	if err := j.Replay(r.begin, r.finish); err != nil {
		j.t.Fatal(err)
	}
	return r
}

// nth is the task of record n; count reads it back.
func nth(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte("task "), n) }

// inOrder holds that r is tasks from, from+1, … and tells how far it goes.
func (r *replayed) inOrder(from uint64) (next uint64, err error) {
	for _, b := range r.finished {
		if n := binary.BigEndian.Uint64(b[5:]); n != from {
			return from, fmt.Errorf("task %d where %d should be", n, from)
		}
		from++
	}
	return from, nil
}

// put replaces a file.
func put(t *testing.T, fs vfs.FS, path string, b []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err == nil {
		_, err = f.Write(b)
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// counting counts syncs by the last part of the file's name.
type counting struct {
	vfs.FS
	mu sync.Mutex
	n  map[string]int
}

func (c *counting) syncs(kind string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[kind]
}

func (c *counting) Create(name string, cat vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.Create(name, cat)
	return &countingFile{f, c, name[strings.LastIndexByte(name, '.')+1:]}, err
}

func (c *counting) ReuseForWrite(old, name string, cat vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.ReuseForWrite(old, name, cat)
	return &countingFile{f, c, name[strings.LastIndexByte(name, '.')+1:]}, err
}

type countingFile struct {
	vfs.File
	c    *counting
	kind string
}

func (f *countingFile) Sync() error { f.count(); return f.File.Sync() }

func (f *countingFile) SyncData() error { f.count(); return f.File.SyncData() }

func (f *countingFile) count() {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if f.c.n == nil {
		f.c.n = map[string]int{}
	}
	f.c.n[f.kind]++
}

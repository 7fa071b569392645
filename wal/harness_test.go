package wal

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
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
	if err := j.Replay(false, r.begin, r.finish); err != nil {
		j.t.Fatal(err)
	}
	return r
}

// nth is the task of record n; count reads it back.
func nth(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte("task "), n) }

// inOrder holds that r is tasks from, from+1, … and returns where they end.
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

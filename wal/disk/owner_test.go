package disk

import (
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// owner is the smallest owner of a folder: it counts its commits.
type owner struct {
	*Folder
	t testing.TB
	n uint64
}

// quiet is the configuration of tests: small, silent, and on fs. A process that
// would end itself fails the test.
func quiet(t testing.TB, fs vfs.FS) Config {
	return Config{
		Dir: "/data/store", Part: "store", FS: fs, Log: slog.New(slog.DiscardHandler), stderr: io.Discard,
		Options:    func() *pebble.Options { return &pebble.Options{MemTableSize: 64 << 10, CacheSize: 1 << 20} },
		BeforeSync: func() {}, Failed: func(error) {},
		Exit: func(int) { t.Error("the process ends itself") },
	}
}

var counter = []byte("n")

// count reads the number that a store ends at.
func count(db *pebble.DB) (uint64, error) {
	v, done, err := db.Get(counter)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n := binary.BigEndian.Uint64(v)
	return n, done.Close()
}

func tryOpen(t testing.TB, cfg Config) (*owner, error) {
	f, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	o := &owner{Folder: f, t: t}
	if o.n, err = count(f.DB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err = f.CheckMark(o.n, o.n > 0); err == nil {
		err = f.StartMark(o.n)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return o, nil
}

func open(t testing.TB, cfg Config) *owner {
	t.Helper()
	o, err := tryOpen(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *owner) commit() {
	o.t.Helper()
	if err := o.DB.Set(counter, binary.BigEndian.AppendUint64(nil, o.n+1), pebble.Sync); err != nil {
		o.t.Fatal(err)
	}
	o.n++
	o.SetMark(o.n)
}

func (o *owner) backup(dir string) error { return o.Backup(dir, o.n, count) }

func (o *owner) close() {
	o.t.Helper()
	if err := o.Close(); err != nil {
		o.t.Fatal(err)
	}
}

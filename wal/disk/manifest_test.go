package disk

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// flushed is a store as a kill leaves it, and how many numbers are in it: each in a table of its
// own, but the last one, which is in the log.
func flushed(t *testing.T, cfg Config) (numbers int) {
	t.Helper()
	o := open(t, cfg)
	for numbers = range 6 {
		o.number(numbers)
		if err := o.DB.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	o.number(numbers + 1)
	return numbers + 2
}

func (o *owner) number(n int) {
	o.t.Helper()
	if err := o.DB.Set(fmt.Append(nil, "number ", n), nil, pebble.NoSync); err != nil {
		o.t.Fatal(err)
	}
	o.commit()
}

// lost is the first number that is not in the store, or -1.
func (o *owner) lost(numbers int) int {
	for n := range numbers {
		_, done, err := o.DB.Get(fmt.Append(nil, "number ", n))
		if errors.Is(err, pebble.ErrNotFound) {
			return n
		}
		if err != nil {
			o.t.Fatal(err)
		}
		_ = done.Close()
	}
	return -1
}

// damagedCopy is a copy of a store, in which a file was changed.
func damagedCopy(t *testing.T, from vfs.FS, dir, file string, change func([]byte) []byte) vfs.FS {
	t.Helper()
	to := vfs.NewMem()
	names, err := from.List(dir)
	if err == nil {
		err = to.MkdirAll(dir, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		f, err := from.Open(from.PathJoin(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		if name == file {
			b = change(b)
		}
		if err := writeFile(to, to.PathJoin(dir, name), b); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// A manifest with a flipped bit, or without its end, is refused, or all is there: Pebble takes the
// manifest to end there, and would leave out the tables that the rest of it names.
func TestDamagedManifest(t *testing.T) {
	cfg := quiet(t, vfs.NewMem())
	options := cfg.Options
	cfg.Options = func() *pebble.Options {
		o := options()
		o.DisableAutomaticCompactions = true // a table that was merged is missed by Pebble
		return o
	}
	numbers := flushed(t, cfg)
	d, err := pebble.Peek(cfg.Dir, cfg.FS)
	if err != nil {
		t.Fatal(err)
	}
	name := cfg.FS.PathBase(d.ManifestFilename)
	info, err := cfg.FS.Stat(d.ManifestFilename)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	try := func(what string, change func([]byte) []byte) {
		t.Helper()
		c := cfg
		c.FS = damagedCopy(t, cfg.FS, cfg.Dir, name, change)
		c.Exit = func(int) {}
		o, err := tryOpen(t, c)
		if err != nil {
			refused++
			return
		}
		if n := o.lost(numbers); n >= 0 {
			t.Errorf("%s: it opens without number %d", what, n)
		}
		o.close()
	}
	for at := range int(info.Size()) {
		try(fmt.Sprint("a bit of byte ", at), func(b []byte) []byte {
			b[at] ^= 1 << (at % 8)
			return b
		})
	}
	for size := range int(info.Size()) {
		try(fmt.Sprint(size, " bytes"), func(b []byte) []byte { return b[:size] })
	}
	if refused != 2*int(info.Size()) {
		t.Errorf("%d of %d were refused", refused, 2*info.Size())
	}
	// What stands in the file beside it is no longer than the manifest, and a record that was being
	// written when the process was killed is no loss.
	try("as it is", func(b []byte) []byte { return b })
	try("a torn record", func(b []byte) []byte { return append(b, 1, 2, 3, 4, 200, 0, 1, 7) })
	if refused != 2*int(info.Size()) {
		t.Error("a sound manifest was refused")
	}

	c := cfg
	c.FS, c.AcceptLoss = damagedCopy(t, cfg.FS, cfg.Dir, name, func(b []byte) []byte { return b[:len(b)-1] }), true
	open(t, c).close() // the loss is accepted
}

// What is noted of a manifest is right over starts, and when a new manifest takes over.
func TestManifestMark(t *testing.T) {
	cfg := quiet(t, vfs.NewMem())
	options := cfg.Options
	cfg.Options = func() *pebble.Options {
		o := options()
		o.MaxManifestFileSize = 1 // a new one whenever Pebble may
		return o
	}
	seen := map[string]bool{}
	n := 0
	for range 3 {
		o := open(t, cfg)
		for range 10 {
			o.number(n)
			n++
			if err := o.DB.Flush(); err != nil {
				t.Fatal(err)
			}
			d, err := pebble.Peek(cfg.Dir, cfg.FS)
			if err != nil {
				t.Fatal(err)
			}
			seen[d.ManifestFilename] = true
		}
		if lost := o.lost(n); lost >= 0 {
			t.Errorf("number %d is lost", lost)
		}
		o.close()
		d, _ := pebble.Peek(cfg.Dir, cfg.FS)
		number, _ := manifestNumber(cfg.FS.PathBase(d.ManifestFilename))
		marked, _, err := readManifestMark(cfg.FS, cfg.FS.PathJoin(cfg.Dir, manifestMarkName), number)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := lengthOfManifest(cfg.FS, d.ManifestFilename); err != nil || found != marked {
			t.Errorf("%s ends at %d, and %d is noted: %v", d.ManifestFilename, found, marked, err)
		}
	}
	if len(seen) < 3 {
		t.Errorf("there were manifests %q", slices.Collect(maps.Keys(seen)))
	}
}

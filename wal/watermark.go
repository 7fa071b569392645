package wal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	iofs "io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// watermark is a small file that says how many records were made durable. It
// is written after each commit, without a sync, and never runs ahead of the
// journal; so a start that finds fewer records than it says has lost some.
//
//	offset 0    slot 0:  "xwm1"  crc32c(count) (4, LE)  count (8, LE)
//	offset 512  slot 1:  the same
//
// Slots take turns, half a KiB apart: a torn write spoils one of them only.
type watermark struct {
	f    vfs.File
	slot int
	buf  [slotSize]byte
}

const (
	watermarkName = "watermark"
	slotMagic     = "xwm1"
	slotSize      = 16
	slotSpacing   = 512
)

// errDamaged: the file is there but neither slot can be read.
var errDamaged = errors.New("the watermark file is damaged")

func putSlot(b []byte, count uint64) {
	copy(b, slotMagic)
	binary.LittleEndian.PutUint64(b[8:], count)
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:slotSize], castagnoli))
}

func readSlot(b []byte) (count uint64, ok bool) {
	ok = string(b[:4]) == slotMagic && binary.LittleEndian.Uint32(b[4:]) == crc32.Checksum(b[8:slotSize], castagnoli)
	return binary.LittleEndian.Uint64(b[8:]), ok
}

// readWatermark tells what the file says; exists is false when there is none.
func readWatermark(fs vfs.FS, path string) (count uint64, exists bool, err error) {
	f, err := fs.Open(path)
	if errors.Is(err, iofs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	var b [slotSpacing + slotSize]byte
	if _, err := f.ReadAt(b[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, true, err
	}
	a, okA := readSlot(b[:slotSize])
	c, okC := readSlot(b[slotSpacing:])
	switch {
	case okA && okC:
		return max(a, c), true, nil
	case okA:
		return a, true, nil
	case okC:
		return c, true, nil
	}
	return 0, true, errDamaged
}

// createWatermark writes the file anew, durably, in place of any former one.
func createWatermark(fs vfs.FS, dir string, count uint64) error {
	path := fs.PathJoin(dir, watermarkName)
	var b [slotSpacing + slotSize]byte
	putSlot(b[:], count)
	putSlot(b[slotSpacing:], count)
	if err := writeFile(fs, path+".tmp", b[:]); err != nil {
		return err
	}
	if err := fs.Rename(path+".tmp", path); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

func openWatermark(fs vfs.FS, path string) (*watermark, error) {
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return &watermark{f: f}, nil
}

// write notes that count records are durable. Only the committer calls it.
func (w *watermark) write(count uint64) error {
	putSlot(w.buf[:], count)
	_, err := w.f.WriteAt(w.buf[:], int64(w.slot)*slotSpacing)
	w.slot ^= 1
	return err
}

func (w *watermark) close() error {
	return errors.Join(w.f.Sync(), w.f.Close())
}

// writeFile creates a file with these bytes and syncs it.
func writeFile(fs vfs.FS, path string, b []byte) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// makeDir creates a directory and whatever is missing above it, and syncs all
// that is above it: a former start may have been killed between the two. Those
// that were there before and cannot be opened are left alone.
func makeDir(fs vfs.FS, dir string) error {
	created := map[string]bool{}
	for at := dir; fs.PathDir(at) != at; at = fs.PathDir(at) {
		if _, err := fs.Stat(at); err == nil {
			break
		} else if !errors.Is(err, iofs.ErrNotExist) {
			return err
		}
		created[fs.PathDir(at)] = true
	}
	if err := fs.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for at := dir; fs.PathDir(at) != at; at = fs.PathDir(at) {
		up := fs.PathDir(at)
		if err := syncDir(fs, up); err != nil && (created[up] || !errors.Is(err, iofs.ErrPermission)) {
			return err
		}
	}
	return nil
}

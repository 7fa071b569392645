package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	iofs "io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Mark is a small file beside the store that says how much of it is durable: a
// number that only grows, of records or of commits. It is written after each
// commit and before anybody is answered, without a sync. A kill leaves it exact, a
// power failure may leave it behind, nothing leaves it ahead. So a start that finds
// less than the mark says has lost something.
//
//	offset 0    slot 0:  "xwm1"  crc32c(number) (4, LE)  number (8, LE)
//	offset 512  slot 1:  the same
//
// Slots take turns, half a KiB apart: a torn write spoils one of them only.
type Mark struct {
	f    vfs.File
	slot int
	buf  [slotSize]byte
}

const (
	markName    = "watermark"
	slotMagic   = "xwm1"
	slotSize    = 16
	slotSpacing = 512
)

var (
	// ErrTailLost: the store ends before what is known to have been durable.
	ErrTailLost = errors.New("the end of the store is lost")

	errDamaged = errors.New("the file is damaged")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

const orAccept = "restore a backup, or accept the loss (--accept-data-loss)"

// CheckMark holds found, the number that the store ends at, against the mark. It
// returns what the mark says, or found where the mark says less: the caller has
// lost what lies between, and that was accepted. used: the store has had a mark
// before, so that one that is missing is a loss as well.
func (f *Folder) CheckMark(found uint64, used bool) (marked uint64, err error) {
	path := f.cfg.FS.PathJoin(f.cfg.Dir, markName)
	n, exists, err := readMark(f.cfg.FS, path)
	switch {
	case f.cfg.AcceptLoss && (err == nil || errors.Is(err, errDamaged)):
	case err != nil:
		return 0, fmt.Errorf("%s: %w", path, err)
	case n > found:
		return 0, fmt.Errorf("%w: it ends at number %d, and %s says that %d was durable; %s", ErrTailLost, found, path, n, orAccept)
	case used && !exists:
		return 0, fmt.Errorf("%s is missing: nothing says whether the end of the store is there; put it back, or %s", path, orAccept)
	}
	return max(n, found), nil
}

// StartMark writes the mark anew: all up to n is durable. SetMark follows.
func (f *Folder) StartMark(n uint64) (err error) {
	if err := createMark(f.cfg.FS, f.cfg.Dir, n); err != nil {
		return err
	}
	f.mark, err = openMark(f.cfg.FS, f.cfg.FS.PathJoin(f.cfg.Dir, markName))
	return err
}

// SetMark notes that all up to n is durable. One goroutine may call it.
func (f *Folder) SetMark(n uint64) {
	if err := f.mark.set(n); err != nil {
		f.Fatalf("cannot write the file %s: %v", markName, err)
	}
}

func putSlot(b []byte, n uint64) {
	copy(b, slotMagic)
	binary.LittleEndian.PutUint64(b[8:], n)
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:slotSize], castagnoli))
}

func readSlot(b []byte) (n uint64, ok bool) {
	ok = string(b[:4]) == slotMagic && binary.LittleEndian.Uint32(b[4:]) == crc32.Checksum(b[8:slotSize], castagnoli)
	return binary.LittleEndian.Uint64(b[8:]), ok
}

// readMark returns what the file says; exists is false when there is none.
func readMark(fs vfs.FS, path string) (n uint64, exists bool, err error) {
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
	x, okX := readSlot(b[:slotSize])
	y, okY := readSlot(b[slotSpacing:])
	switch {
	case okX && okY:
		return max(x, y), true, nil
	case okX:
		return x, true, nil
	case okY:
		return y, true, nil
	}
	return 0, true, errDamaged
}

// createMark writes the file anew, durably, in place of any former one.
func createMark(fs vfs.FS, dir string, n uint64) error {
	path := fs.PathJoin(dir, markName)
	var b [slotSpacing + slotSize]byte
	putSlot(b[:], n)
	putSlot(b[slotSpacing:], n)
	if err := writeFile(fs, path+".tmp", b[:]); err != nil {
		return err
	}
	if err := fs.Rename(path+".tmp", path); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

func openMark(fs vfs.FS, path string) (*Mark, error) {
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return &Mark{f: f}, nil
}

func (m *Mark) set(n uint64) error {
	putSlot(m.buf[:], n)
	_, err := m.f.WriteAt(m.buf[:], int64(m.slot)*slotSpacing)
	m.slot ^= 1
	return err
}

func (m *Mark) close() error { return errors.Join(m.f.Sync(), m.f.Close()) }

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

package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	iofs "io/fs"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/record"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The manifest names the tables of the store, and the first log that is not in them. Pebble takes a
// damaged record of it for its end: what was flushed since is not part of the store then, its
// log was removed, and the tables that have it are removed by the start. The number of the last
// commit does not tell, for that is in a later log. So a small file beside the manifest says how
// much of it is durable. It is written after each sync of the manifest, without a sync of its
// own: as that of a Mark, it is never ahead of what was durable.
//
//	offset 0    slot 0:  "xmm1"  crc32c(both numbers) (4, LE)  number of the manifest (8, LE)  length (8, LE)
//	offset 512  slot 1:  the same
//
// Slots take turns. While one manifest follows another, each has a slot: the second one is
// synced a second time only after it has become the current one.
const (
	manifestPrefix    = "MANIFEST-"
	manifestMarkName  = "manifest.mark"
	manifestMagic     = "xmm1"
	manifestSlotSize  = 24
	manifestMarkBytes = slotSpacing + manifestSlotSize
)

// manifestMark notes how much of a manifest is durable.
type manifestMark struct {
	f    vfs.File
	slot int
}

// set notes a length. The first note of a process makes the file, if it is missing.
func (m *manifestMark) set(f *Folder, number uint64, length int64) error {
	if m.f == nil {
		path := f.cfg.FS.PathJoin(f.cfg.Dir, manifestMarkName)
		if _, err := f.cfg.FS.Stat(path); errors.Is(err, iofs.ErrNotExist) {
			if err := writeFile(f.cfg.FS, path, make([]byte, manifestMarkBytes)); err != nil {
				return err
			}
		}
		var err error
		if m.f, err = f.cfg.FS.OpenReadWrite(path, vfs.WriteCategoryUnspecified); err != nil {
			return err
		}
	}
	var b [manifestSlotSize]byte
	copy(b[:], manifestMagic)
	binary.LittleEndian.PutUint64(b[8:], number)
	binary.LittleEndian.PutUint64(b[16:], uint64(length))
	binary.LittleEndian.PutUint32(b[4:], crc32.Checksum(b[8:], castagnoli))
	_, err := m.f.WriteAt(b[:], int64(m.slot)*slotSpacing)
	m.slot ^= 1
	return err
}

func (m *manifestMark) close() error {
	if m.f == nil {
		return nil
	}
	return m.f.Close()
}

// checkManifest refuses a store whose manifest has lost what was durable, before Pebble opens
// it and removes the tables that it does not find there. A store without the file is of an
// older version: nothing is known of it.
func (f *Folder) checkManifest() error {
	fs := f.cfg.FS
	d, err := pebble.Peek(f.cfg.Dir, fs)
	if err != nil || !d.Exists {
		return nil // Pebble finds what is wrong
	}
	number, ok := manifestNumber(fs.PathBase(d.ManifestFilename))
	marked, slot, err := readManifestMark(fs, fs.PathJoin(f.cfg.Dir, manifestMarkName), number)
	if err != nil || !ok || marked == 0 {
		return err
	}
	f.manifests.slot = slot ^ 1 // the current one keeps its own until the next one is current
	found, err := lengthOfManifest(fs, d.ManifestFilename)
	if err != nil {
		return err
	}
	if found < marked {
		err := fmt.Errorf("%w: %s is readable up to byte %d, and was durable up to byte %d; %s", ErrTailLost, d.ManifestFilename, found, marked, orAccept)
		if !f.cfg.AcceptLoss {
			return err
		}
		f.log.Error("the store has lost tables", "error", err)
	}
	return nil
}

func manifestNumber(name string) (n uint64, ok bool) {
	digits, ok := strings.CutPrefix(name, manifestPrefix)
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil
}

// readManifestMark returns the length that was noted of a manifest, and in which slot; 0: none.
func readManifestMark(fs vfs.FS, path string, number uint64) (length int64, slot int, err error) {
	f, err := fs.Open(path)
	if errors.Is(err, iofs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	var b [manifestMarkBytes]byte
	if _, err := f.ReadAt(b[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, err
	}
	for i := range 2 {
		s := b[i*slotSpacing:][:manifestSlotSize]
		is := string(s[:4]) == manifestMagic && binary.LittleEndian.Uint32(s[4:]) == crc32.Checksum(s[8:], castagnoli)
		if n := int64(binary.LittleEndian.Uint64(s[16:])); is && binary.LittleEndian.Uint64(s[8:]) == number && n > length {
			length, slot = n, i
		}
	}
	return length, slot, nil
}

// lengthOfManifest is where the records of a manifest end that Pebble can read.
func lengthOfManifest(fs vfs.FS, path string) (int64, error) {
	f, err := fs.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	rs := record.NewReader(f, 0)
	for end := int64(0); ; end = rs.Offset() {
		r, err := rs.Next()
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		switch {
		case errors.Is(err, io.EOF) || record.IsInvalidRecord(err):
			return end, nil
		case err != nil:
			return 0, err
		}
	}
}

// manifestFile is a manifest of the folder's own: each sync is noted.
type manifestFile struct {
	vfs.File
	folder *Folder
	number uint64
	length int64
}

func (f *manifestFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	f.length += int64(n)
	return n, err
}

func (f *manifestFile) Sync() error {
	if err := f.File.Sync(); err != nil {
		return err // Pebble ends the process
	}
	if err := f.folder.manifests.set(f.folder, f.number, f.length); err != nil {
		f.folder.Fatalf("cannot write the file %s: %v", manifestMarkName, err)
	}
	return nil
}

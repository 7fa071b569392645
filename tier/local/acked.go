package local

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ackedFile notes the number of the last commit that was acknowledged, beside
// the log and without a sync. Pebble cannot tell a log whose last blocks were
// damaged from one that ends there; a start that finds fewer commits than were
// acknowledged can. A kill leaves the note whole; after a power loss it may be
// older than the log, never newer, for it is written after the log's sync.
//
//	slot = number (8 bytes) CRC-32 (4 bytes), twice, written in turn
type ackedFile struct {
	f      vfs.File
	newest uint64
}

const ackedSlot = 32

func openAcked(fs vfs.FS, path string) (*ackedFile, error) {
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	a := &ackedFile{f: f}
	var b [12]byte
	for slot := range int64(2) {
		if _, err := f.ReadAt(b[:], slot*ackedSlot); err != nil {
			if errors.Is(err, io.EOF) {
				continue
			}
			return nil, errors.Join(err, f.Close())
		}
		if n := binary.LittleEndian.Uint64(b[:]); crc32.ChecksumIEEE(b[:8]) == binary.LittleEndian.Uint32(b[8:]) {
			a.newest = max(a.newest, n)
		}
	}
	return a, nil
}

// note writes the number. It is a help, not the truth: a failure is no reason
// to refuse what is durable already.
func (a *ackedFile) note(seq uint64) {
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], seq)
	binary.LittleEndian.PutUint32(b[8:], crc32.ChecksumIEEE(b[:8]))
	_, _ = a.f.WriteAt(b[:], int64(seq%2)*ackedSlot)
}

// reset forgets a number that is later than what there is.
func (a *ackedFile) reset(seq uint64) error {
	a.newest = seq
	a.note(seq)
	_, err := a.f.WriteAt(make([]byte, 12), int64((seq+1)%2)*ackedSlot)
	return err
}

func (a *ackedFile) close() error { return a.f.Close() }

package change

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"xtimer/engine"
)

// bulkFile keeps what is left of a bulk operation that goes on after its answer, so that
// the next start resumes it:
//
//	done, failed          8 bytes each, big endian: the items before done are done
//	length, bulkHeader    4 bytes, and so many of JSON
//	items                 timer and due, 8 bytes each
//
// A file is there whole or not at all. Items are done in order, a round at a time, and
// done is written after each round: those of one round may be done twice. They are read
// a round at a time, too: operations that wait hold none in memory.
type bulkFile struct{ f *os.File }

type bulkHeader struct {
	ID      string     `json:"id"`
	Action  BulkAction `json:"action"`
	App     string     `json:"app,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	Until   int64      `json:"until,omitempty"`
	By      string     `json:"by,omitempty"` // the author, see engine.WithAuthor
	Started int64      `json:"started"`      // Unix ms
	Shards  engine.Set `json:"shards"`       // that it has selected from
}

const (
	bulkSuffix   = ".operation"
	bulkProgress = 16
	bulkItem     = 16
)

// makeBulkFile writes a new one, durably.
func makeBulkFile(dir string, h bulkHeader, items []engine.Key) (*bulkFile, error) {
	head, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	b := make([]byte, bulkProgress, bulkProgress+4+len(head)+bulkItem*len(items))
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(head))), head...)
	for _, k := range items {
		b = binary.BigEndian.AppendUint64(b, uint64(k.Timer))
		b = binary.BigEndian.AppendUint64(b, uint64(k.Due))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, "new-*") // 0600
	if err != nil {
		return nil, err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, h.ID+bulkSuffix))
	}
	if err = errors.Join(err, syncFolder(dir), syncFolder(filepath.Dir(dir))); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return &bulkFile{f}, nil
}

// openBulkFile opens the file of an operation that a former process left; total is the
// number of its items.
func openBulkFile(name string) (b *bulkFile, h bulkHeader, total, done, failed int64, err error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, h, 0, 0, 0, err
	}
	b = &bulkFile{f}
	if h, total, done, failed, err = b.head(); err != nil {
		return nil, h, 0, 0, 0, fmt.Errorf("%s is damaged: %w", name, errors.Join(err, f.Close()))
	}
	return b, h, total, done, failed, nil
}

var errHead = errors.New("its numbers or its header make no sense")

// head reads what stands before the items, and counts these.
func (b *bulkFile) head() (h bulkHeader, total, done, failed int64, err error) {
	is, err := b.f.Stat()
	var numbers [bulkProgress + 4]byte
	if err == nil {
		_, err = b.f.ReadAt(numbers[:], 0)
	}
	if err != nil {
		return h, 0, 0, 0, err
	}
	done, failed = int64(binary.BigEndian.Uint64(numbers[:])), int64(binary.BigEndian.Uint64(numbers[8:]))
	length := int64(binary.BigEndian.Uint32(numbers[bulkProgress:]))
	items := is.Size() - int64(len(numbers)) - length
	if items < 0 || items%bulkItem != 0 || done < 0 || done > items/bulkItem {
		return h, 0, 0, 0, errHead
	}
	head := make([]byte, length)
	if _, err := b.f.ReadAt(head, int64(len(numbers))); err != nil {
		return h, 0, 0, 0, err
	}
	if json.Unmarshal(head, &h) != nil || int(h.Action) >= len(bulkNames) {
		return h, 0, 0, 0, errHead
	}
	return h, items / bulkItem, done, failed, nil
}

// read reads the items in [from, to) of all. They stand at the end of the file.
func (b *bulkFile) read(all, from, to int64) ([]engine.Key, error) {
	is, err := b.f.Stat()
	if err != nil {
		return nil, err
	}
	raw := make([]byte, (to-from)*bulkItem)
	if _, err := b.f.ReadAt(raw, is.Size()-(all-from)*bulkItem); err != nil {
		return nil, err
	}
	items := make([]engine.Key, 0, to-from)
	for ; len(raw) >= bulkItem; raw = raw[bulkItem:] {
		items = append(items, engine.Key{
			Timer: engine.TimerID(binary.BigEndian.Uint64(raw)), Due: int64(binary.BigEndian.Uint64(raw[8:])),
		})
	}
	return items, nil
}

// bulkFiles names those that are left in a folder, which may be missing.
func bulkFiles(dir string) (names []string, err error) {
	es, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, e := range es {
		if strings.HasSuffix(e.Name(), bulkSuffix) {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	return names, err
}

// progress notes that the items before done are done; nil keeps none.
func (b *bulkFile) progress(done, failed int64) error {
	if b == nil {
		return nil
	}
	var p [bulkProgress]byte
	binary.BigEndian.PutUint64(p[:], uint64(done))
	binary.BigEndian.PutUint64(p[8:], uint64(failed))
	_, err := b.f.WriteAt(p[:], 0)
	return errors.Join(err, b.f.Sync())
}

// close ends the work with a file, and removes it when all is over.
func (b *bulkFile) close(over bool, dir, id string) error {
	if b == nil {
		return nil
	}
	err := b.f.Close()
	if over {
		err = errors.Join(err, os.Remove(filepath.Join(dir, id+bulkSuffix)), syncFolder(dir))
	}
	return err
}

// syncFolder makes the names in a folder durable.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

package disk

import (
	"bytes"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// FuzzMark: a file of any bytes says a number, or that it
// is damaged; and what is written to it next is what it says, should that write
// be torn anywhere, too.
func FuzzMark(f *testing.F) {
	var both [slotSpacing + slotSize]byte
	putSlot(both[:], 7)
	putSlot(both[slotSpacing:], 8)
	f.Add(both[:], uint64(9), 3)
	f.Add(both[:slotSize], uint64(1), 12)
	f.Add(bytes.Replace(both[:], []byte(slotMagic), []byte("xwm2"), 1), uint64(9), 5)
	f.Add([]byte{}, uint64(0), 0)
	f.Fuzz(func(t *testing.T, content []byte, more uint64, torn int) {
		fs := vfs.NewMem()
		if err := writeFile(fs, markName, content); err != nil {
			t.Fatal(err)
		}
		count, exists, err := readMark(fs, markName)
		if !exists || err != nil && (!errors.Is(err, errDamaged) || count != 0) {
			t.Fatal(count, exists, err)
		}
		if err := createMark(fs, "", count); err != nil {
			t.Fatal(err)
		}
		m, err := openMark(fs, markName)
		if err != nil {
			t.Fatal(err)
		}
		next := max(count, more) // it never goes back
		if err := m.set(next); err != nil {
			t.Fatal(err)
		}
		if err := m.close(); err != nil {
			t.Fatal(err)
		}
		if got, _, err := readMark(fs, markName); err != nil || got != next {
			t.Fatalf("%d was written, %d is read, %v", next, got, err)
		}
		// A write that tears leaves the other slot.
		var b [slotSpacing + slotSize]byte
		putSlot(b[:], count)
		putSlot(b[slotSpacing:], next)
		part := uint(torn) % slotSize
		copy(b[slotSpacing+part:], bytes.Repeat([]byte{0xa5}, slotSize))
		if err := writeFile(fs, markName, b[:]); err != nil {
			t.Fatal(err)
		}
		if got, _, err := readMark(fs, markName); err != nil || got != count {
			t.Fatalf("torn after %d bytes: %d is read, want %d, %v", part, got, count, err)
		}
	})
}

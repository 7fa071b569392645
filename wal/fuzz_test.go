package wal

import (
	"bytes"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// FuzzWatermark: a file of any bytes says how many records there are, or that it
// is damaged; and what is written to it next is what it says, should that write
// be torn anywhere, too.
func FuzzWatermark(f *testing.F) {
	var both [slotSpacing + slotSize]byte
	putSlot(both[:], 7)
	putSlot(both[slotSpacing:], 8)
	f.Add(both[:], uint64(9), 3)
	f.Add(both[:slotSize], uint64(1), 12)
	f.Add(bytes.Replace(both[:], []byte(slotMagic), []byte("xwm2"), 1), uint64(9), 5)
	f.Add([]byte{}, uint64(0), 0)
	f.Fuzz(func(t *testing.T, content []byte, more uint64, torn int) {
		fs := vfs.NewMem()
		if err := writeFile(fs, watermarkName, content); err != nil {
			t.Fatal(err)
		}
		count, exists, err := readWatermark(fs, watermarkName)
		if !exists || err != nil && (!errors.Is(err, errDamaged) || count != 0) {
			t.Fatal(count, exists, err)
		}
		if err := createWatermark(fs, "", count); err != nil {
			t.Fatal(err)
		}
		w, err := openWatermark(fs, watermarkName)
		if err != nil {
			t.Fatal(err)
		}
		next := max(count, more) // it never goes back
		if err := w.write(next); err != nil {
			t.Fatal(err)
		}
		if err := w.close(); err != nil {
			t.Fatal(err)
		}
		if got, _, err := readWatermark(fs, watermarkName); err != nil || got != next {
			t.Fatalf("%d was written, %d is read, %v", next, got, err)
		}
		// A write that tears leaves the other slot.
		var b [slotSpacing + slotSize]byte
		putSlot(b[:], count)
		putSlot(b[slotSpacing:], next)
		part := uint(torn) % slotSize
		copy(b[slotSpacing+part:], bytes.Repeat([]byte{0xa5}, slotSize))
		if err := writeFile(fs, watermarkName, b[:]); err != nil {
			t.Fatal(err)
		}
		if got, _, err := readWatermark(fs, watermarkName); err != nil || got != count {
			t.Fatalf("torn after %d bytes: %d is read, want %d, %v", part, got, count, err)
		}
	})
}

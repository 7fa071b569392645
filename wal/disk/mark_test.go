package disk

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Without its mark, or behind it, a store in use is not trusted, until the loss is
// accepted; once is enough.
func TestLoss(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(fs vfs.FS, path string) error
		says  string
	}{
		"missing": {func(fs vfs.FS, path string) error { return fs.Remove(path) }, "/data/store/watermark is missing"},
		"damaged": {func(fs vfs.FS, path string) error { return writeFile(fs, path, make([]byte, 1024)) }, "/data/store/watermark: the file is damaged"},
		"cut":     {func(fs vfs.FS, path string) error { return writeFile(fs, path, nil) }, "/data/store/watermark: the file is damaged"},
		"ahead":   {func(fs vfs.FS, path string) error { return createMark(fs, fs.PathDir(path), 9) }, "it ends at number 1, and /data/store/watermark says that 9 was durable"},
	} {
		fs := vfs.NewMem()
		o := open(t, quiet(t, fs))
		o.commit()
		o.close()
		if err := c.spoil(fs, "/data/store/watermark"); err != nil {
			t.Fatal(err)
		}
		cfg := quiet(t, fs)
		_, err := tryOpen(t, cfg)
		if err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, ErrTailLost) != (name == "ahead") {
			t.Errorf("%s: %v", name, err)
		}
		cfg.AcceptLoss = true
		open(t, cfg).close()
		open(t, quiet(t, fs)).close()
	}
}

// The bytes on disk are a promise to the next release.
func TestSlotGolden(t *testing.T) {
	var slot [slotSize]byte
	putSlot(slot[:], 258)
	if got, want := hex.EncodeToString(slot[:]), "78776d310c6453760201000000000000"; got != want {
		t.Errorf("slot %s, want %s", got, want)
	}
}

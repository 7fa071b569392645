package wal

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/engine"
)

// A copy made under load opens as a journal, with all that was durable when it
// was asked for and nothing out of order, and the original goes on.
func TestBackup(t *testing.T) {
	fs := vfs.NewMem()
	j := start(t, quiet(fs))
	done := make(chan uint64)
	stop := make(chan struct{})
	go func() {
		var n uint64
		for ; ; n++ {
			select {
			case <-stop:
				done <- n
				return
			default:
			}
			p := j.Finish(append(nth(n), make([]byte, 500)...))
			if n%16 == 0 {
				_ = j.Sync(t.Context(), p)
			}
			if n%100 == 0 {
				_ = j.Forget(max(p, 200)-200, nil)
			}
		}
	}()
	for _, dir := range []string{"/backup/one", "/backup/two"} {
		j.sync(j.Finish(nth(0)))
		acked := j.durable.Load()
		if err := j.Backup(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		cfg := quiet(fs)
		cfg.Dir = dir
		c := start(t, cfg)
		if n := uint64(c.Next()); n < acked {
			t.Errorf("the copy ends after %d of %d", n, acked)
		}
		if got := uint64(len(c.replay().finished)); got != uint64(c.Len()) {
			t.Errorf("%d records of %d", got, c.Len())
		}
		c.end()
	}
	close(stop)
	n := <-done
	j.end()
	if err := j.Backup(t.Context(), "/backup/three"); !errors.Is(err, ErrEnded) {
		t.Errorf("of a closed journal: %v", err)
	}
	j = start(t, quiet(fs))
	defer j.end()
	if j.Next() != engine.Position(n+2) {
		t.Errorf("next %d, want %d", j.Next(), n+2)
	}
}

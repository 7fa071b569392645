package local

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fatal is Pebble's logger. Pebble calls Fatalf when the disk failed under a
// write of the log or the manifest: what is durable is no longer known, and to
// repeat an fsync is not safe. So the process ends, and a start finds out.
type fatal struct {
	fs   vfs.FS
	path string
	exit func(code int)
	dead chan struct{} // closed when the store has failed; nothing is written after
	once sync.Once
	why  atomic.Pointer[string]
}

// fatalStatus is the exit status that tells a supervisor: the disk failed.
const fatalStatus = 70

func (f *fatal) Infof(string, ...any)  {}
func (f *fatal) Errorf(string, ...any) {}

func (f *fatal) Fatalf(format string, args ...any) {
	f.once.Do(func() {
		why := fmt.Sprintf(format, args...)
		f.why.Store(&why)
		close(f.dead)
		line, _ := json.Marshal(map[string]string{"level": "FATAL", "msg": "the cold store's disk failed", "error": why, "store": f.path})
		fmt.Fprintf(os.Stderr, "%s\n", line)
		// The disk may be what hangs, so the file gets a second and no more.
		wrote := make(chan struct{})
		go func() {
			defer close(wrote)
			if w, err := f.fs.Create(f.fs.PathJoin(f.path, "last_fatal"), vfs.WriteCategoryUnspecified); err == nil {
				_, _ = w.Write(append(line, '\n'))
				_ = w.Sync()
				_ = w.Close()
			}
		}()
		timeout := time.NewTimer(time.Second)
		defer timeout.Stop()
		select {
		case <-wrote:
		case <-timeout.C:
		}
		f.exit(fatalStatus)
	})
}

// err is why the store failed; nil while it has not.
func (f *fatal) err() error {
	if why := f.why.Load(); why != nil {
		return fmt.Errorf("the cold store's disk failed: %s", *why)
	}
	return nil
}

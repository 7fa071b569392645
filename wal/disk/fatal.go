package disk

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// exitCode is for supervisors: the disk is to blame.
const exitCode = 70

// lastFatalName is the file with the last words of a process that ended itself.
const lastFatalName = "last_fatal"

// Fatalf ends the process: one line on stderr, the same in the file last_fatal,
// Exit. It never returns.
func (f *Folder) Fatalf(format string, args ...any) {
	f.ended.Do(func() {
		msg := fmt.Sprintf(format, args...)
		f.cfg.Failed(fmt.Errorf("%s: %s", f.cfg.Dir, msg))
		var line lineWriter
		slog.New(slog.NewJSONHandler(&line, nil)).Error("xtimer ends itself: its disk cannot be trusted",
			"part", f.cfg.Part, "dir", f.cfg.Dir, "error", msg, "exit", exitCode)
		// The disk may be what hangs, and nobody may read stderr, so both get a second and
		// no more.
		wrote := make(chan struct{}, 2)
		own := slices.Clone(line) // a file system may use its buffer
		go func() {
			_, _ = f.cfg.stderr.Write(line)
			wrote <- struct{}{}
		}()
		go func() {
			if !f.isMoved() {
				_ = writeFile(f.cfg.FS, f.cfg.FS.PathJoin(f.cfg.Dir, lastFatalName), own)
			}
			wrote <- struct{}{}
		}()
		timeout := time.NewTimer(time.Second)
		defer timeout.Stop()
		for n := 0; n < cap(wrote); n++ {
			select {
			case <-wrote:
			case <-timeout.C:
				n = cap(wrote)
			}
		}
		f.cfg.Exit(exitCode)
	})
	select {}
}

type lineWriter []byte

func (w *lineWriter) Write(b []byte) (int, error) {
	*w = append(*w, b...)
	return len(b), nil
}

// logger is Pebble's. Pebble calls Fatalf when a write of the log or the manifest
// has failed.
type logger struct{ *Folder }

func (l logger) Infof(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug(fmt.Sprintf(format, args...))
	}
}

func (l logger) Errorf(format string, args ...any) {
	l.log.Error(fmt.Sprintf(format, args...), "dir", l.cfg.Dir)
}

// backgroundError slows Pebble down, which on a full disk would retry a flush, or
// a compaction, 30,000 times a second. A commit that needs the lock that Pebble
// holds meanwhile takes as long.
func (f *Folder) backgroundError(err error) {
	f.trouble.say(f.log, "the store has trouble in the background", "dir", f.cfg.Dir, "error", err)
	time.Sleep(backgroundPause)
}

const backgroundPause = 100 * time.Millisecond

// seldom logs what happens again and again, but not each time.
type seldom struct {
	mu   sync.Mutex
	last time.Time
}

// sayEvery is how far apart two lines of one kind are.
const sayEvery = 10 * time.Second

func (s *seldom) say(log *slog.Logger, msg string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.IsZero() || time.Since(s.last) >= sayEvery {
		s.last = time.Now()
		log.Error(msg, args...)
	}
}

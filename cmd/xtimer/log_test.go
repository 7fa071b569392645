package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestLogThatIsNotRead: a line waits for its reader for a moment, later ones not at all;
// they are counted, and the count is written when the reader goes on.
func TestLogThatIsNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		log := newLog(w, slog.LevelInfo)
		start := time.Now()
		for range 1000 {
			log.Info("held")
		}
		if took := time.Since(start); took != lineWait {
			t.Errorf("1,000 lines took %v", took)
		}

		var got bytes.Buffer
		go func() { _, _ = io.Copy(&got, r) }()
		synctest.Wait()
		start = time.Now()
		for range 10 {
			log.Info("read")
		}
		synctest.Wait()
		if took := time.Since(start); took != 0 {
			t.Errorf("10 lines that are read took %v", took)
		}
		text := got.String()
		for what, n := range map[string]int{`"held"`: 1, `"lines":999`: 1, `"read"`: 10, "\n": 12} {
			if strings.Count(text, what) != n {
				t.Errorf("%s is there %d times, not %d:\n%s", what, strings.Count(text, what), n, text)
			}
		}
		w.Close()
	})
}

// TestReaderOfTheLogStops: a server whose log nobody reads, or whose reader is gone,
// ends as others do.
func TestReaderOfTheLogStops(t *testing.T) {
	for name, stop := range map[string]func(t *testing.T, r *os.File){
		"reads no more": fillPipe,
		"is gone":       func(_ *testing.T, r *os.File) { r.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			defer w.Close()
			addr := nowhere(t)
			cmd := program(t, "serve", "--listen", addr, "--data-dir", t.TempDir())
			cmd.Stderr = w
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			s := &server{t: t, cmd: cmd, url: "http://" + addr, done: make(chan struct{})}
			go func() {
				defer close(s.done)
				_ = cmd.Wait()
			}()
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				<-s.done
			})
			s.awaitReady()
			stop(t, r)
			s.signal(syscall.SIGTERM)
			if status := s.ends(); status != 0 {
				t.Errorf("status %d", status)
			}
		})
	}
}

// fillPipe leaves no room in a pipe. It writes by another description than the server,
// whose writes go on to wait.
func fillPipe(t *testing.T, r *os.File) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux opens a pipe again by its number")
	}
	fd, err := syscall.Open(fmt.Sprintf("/proc/self/fd/%d", r.Fd()), syscall.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	for n := 4096; n > 0; {
		if _, err := syscall.Write(fd, make([]byte, n)); err != nil {
			n /= 2
		}
	}
}

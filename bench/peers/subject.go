package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// subject is a scheduler in a process of its own: a hosted peer, or xtimer.
type subject interface {
	start() error // also again, after kill
	kill()        // SIGKILL, and until it is gone
	pid() int
	add(order) (orderReport, error)
	heard() ([]arrival, error) // by a no-op handler, since last asked
}

// running is a fresh subject over a fresh store.
type running struct {
	subject
	store *server // nil: none
}

// fresh starts one; the last one's data is gone.
func (s setup) fresh(dir string, receiverURL string) (*running, error) {
	dir, err := os.MkdirTemp(dir, s.kind+"-")
	if err != nil {
		return nil, err
	}
	r := &running{}
	addr := ""
	if s.store != "" {
		if r.store, addr, err = startStore(s.store, dir); err != nil {
			return nil, err
		}
	}
	if s.kind == "xtimer" {
		r.subject = &xtimer{dir: dir, receiver: receiverURL}
	} else {
		r.subject = &hosted{name: s.name, env: []string{storeEnv + "=" + addr, receiverEnv + "=" + receiverURL}}
	}
	if err := r.start(); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// warm waits for a first task to fire: River elects a leader first, which takes
// some seconds after a start.
func (r *running) warm(b *receiver, noop bool) error {
	ts := tasks{First: newNumbers(1), N: 1, Start: time.Now().UnixMilli() + 500}
	if _, err := r.add(order{Tasks: ts, Within: time.Minute}); err != nil {
		return err
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		as := b.take()
		if noop {
			var err error
			if as, err = r.heard(); err != nil {
				return err
			}
		}
		if len(as) > 0 {
			return nil
		}
	}
	return errors.New("its first task does not fire within a minute")
}

func (r *running) close() {
	r.kill()
	if r.store != nil {
		r.store.kill()
	}
}

// memory is what the subject and its store hold, in bytes; what processes share
// is divided among them.
func (r *running) memory() (sum int64) {
	pids := []int{r.pid()}
	if r.store != nil {
		pids = append(pids, r.store.family()...)
	}
	for _, pid := range pids {
		sum += memoryOf(pid)
	}
	return sum
}

// hosted is a peer in a child of this program.
type hosted struct {
	name string
	env  []string

	cmd *exec.Cmd
	in  io.WriteCloser
	enc *json.Encoder
	dec *json.Decoder
}

func (h *hosted) start() error {
	h.cmd = exec.Command(os.Args[0], "host", h.name)
	h.cmd.Env = append(os.Environ(), h.env...)
	h.cmd.Stderr = os.Stderr
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := h.cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := h.cmd.Start(); err != nil {
		return err
	}
	h.in, h.enc, h.dec = in, json.NewEncoder(in), json.NewDecoder(out)
	return h.dec.Decode(new(orderReport)) // it is ready
}

func (h *hosted) kill() { killed(h.cmd) }

func (h *hosted) pid() int { return h.cmd.Process.Pid }

func (h *hosted) ask(o order) (r orderReport, err error) {
	if err := h.enc.Encode(o); err != nil {
		return r, err
	}
	if err := h.dec.Decode(&r); err != nil {
		return r, err
	}
	if r.Error != "" {
		return r, fmt.Errorf("it cannot add: %s", r.Error)
	}
	return r, nil
}

func (h *hosted) add(o order) (orderReport, error) { return h.ask(o) }

func (h *hosted) heard() ([]arrival, error) {
	r, err := h.ask(order{Heard: true})
	return r.Heard, err
}

func killed(cmd *exec.Cmd) {
	if cmd != nil && cmd.Process != nil && cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func memoryOf(pid int) int64 {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		return 0
	}
	return field(string(b), "Pss:") << 10
}

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xtimer/cmd/xtimer/exit"
)

// aTerminal is one: what is written to keys is read from screen's other end.
func aTerminal(t *testing.T) (keys io.Writer, tty *os.File) {
	t.Helper()
	m, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { m.Close() })
	if err := unix.IoctlSetPointerInt(int(m.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skip(err)
	}
	n, err := unix.IoctlGetUint32(int(m.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Skip(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { tty.Close() })
	return m, tty
}

// TestDeleteAsks: a person at a terminal, before a timer that is named goes; not
// a script, and not who says --yes.
func TestDeleteAsks(t *testing.T) {
	s := newShell(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, c := range []struct {
		answer string // "": nobody is at a terminal
		args   []string
		asks   string
		status int
		left   int
	}{
		{"n\n", []string{"a/one"}, "Delete a/one? [y/N] ", exit.StatusFailed, 2},
		{"\n", []string{"a/one", "a/two"}, "Delete these 2 timers? [y/N] ", exit.StatusFailed, 2},
		{"y\n", []string{"a/one"}, "Delete a/one? [y/N] ", 0, 1},
		{"n\n", []string{"a/one", "--yes"}, "", 0, 1},
		{"", []string{"a/one"}, "", 0, 1},
		{"", []string{"--app", "a"}, "", exit.StatusUsage, 2},
	} {
		t.Run(strings.Join(append(c.args, strings.TrimSpace(c.answer)), " "), func(t *testing.T) { // one that has no terminal is no reason to pass over the rest
			for _, name := range []string{"one", "two"} {
				s.run("", "timer", "create", "--app", "a", "--name", name, "--every", "1h", "--url", "http://127.0.0.1:1/").want(0)
			}
			in := null
			if c.answer != "" {
				var keys io.Writer
				if keys, in = aTerminal(t); keys != nil {
					if _, err := io.WriteString(keys, c.answer); err != nil {
						t.Fatal(err)
					}
				}
			}
			var out bytes.Buffer
			cmd := newRoot()
			cmd.SetArgs(append([]string{"timer", "delete", "--server", s.url}, c.args...))
			cmd.SetIn(in)
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			ended := make(chan error, 1)
			go func() { ended <- cmd.ExecuteContext(t.Context()) }()
			select {
			case err := <-ended:
				if exit.StatusOf(err) != c.status {
					t.Errorf("%v: %v", c, err)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%v: it waits for an answer", c)
			}
			if asks := strings.Contains(out.String(), "[y/N]"); asks != (c.asks != "") || !strings.Contains(out.String(), c.asks) {
				t.Errorf("%v: it says %s", c, out.String())
			}
			if left := strings.Count(s.do("timer", "list"), "\n") - 1; left != c.left {
				t.Errorf("%v: %d timers are left", c, left)
			}
		})
	}
}

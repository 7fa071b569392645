package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/machine"
	"xtimer/cmd/xtimer/settings"
	"xtimer/cmd/xtimer/store"
	"xtimer/engine"
)

func newServe() *cobra.Command {
	s := settings.Default()
	var show bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the API and fire timers",
		Long: `serve runs the server until SIGTERM, SIGINT or SIGHUP. Then /readyz returns 503, no
new call starts, and calls in flight may finish within --drain. All other tasks are
called after the next start. The exit status is 0. A second signal ends the server
at once.

The value of a setting comes from its flag, from the environment (such as
XTIMER_DATA_DIR), from the YAML file of --config (such as data_dir), or from its
default, in this order. Durations are written 250ms, 30m or 7d. --print-config
shows the resulting values and where each comes from.

Tokens are set in the environment as XTIMER_TOKENS=app:role:token,… or in the
file. The roles are read, write and admin; the app * means all apps:

  apps:
    billing:
      tokens:
        - {sha256: 9f86d0…, role: write}     printf %s TOKEN | sha256sum
      webhook_secrets: [whsec_…]             each call has a signature of each secret`,
		Example: `  xtimer serve
  xtimer serve --listen 127.0.0.1:9090 --data-dir /var/lib/xtimer
  XTIMER_TOKENS='*:admin:'$(openssl rand -hex 16) xtimer serve --listen :8080
  xtimer serve --config /etc/xtimer/xtimer.yaml --print-config`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.Load(cmd, os.Getenv); err != nil {
				return exit.Usage("%w", err)
			}
			if show {
				return s.Print(cmd.OutOrStdout())
			}
			return serve(cmd.Context(), s)
		},
	}
	settings.AddFlags(cmd, s)
	cmd.Flags().BoolVar(&show, "print-config", false, "print the resulting settings with secrets hidden, and exit")
	return cmd
}

// serve is the server from its start to its end.
func serve(ctx context.Context, s *settings.Settings) error {
	// Logs go to stderr: for people on a terminal, for programs elsewhere. Whoever reads
	// them may go away: then the lines are lost, and nothing else.
	signal.Ignore(syscall.SIGPIPE)
	log := newLog(os.Stderr, slog.LevelInfo)
	slog.SetDefault(log)

	// The machine's limits come first, for the parts are sized by them.
	machine.TuneMemory()
	machine.TuneProcessors()
	if s.Pprof { // or the pages of blocks and mutexes stay empty
		runtime.SetBlockProfileRate(10_000)  // ns: one a 10 µs that a goroutine was blocked for
		runtime.SetMutexProfileFraction(100) // one contention in a hundred
	}
	files, err := machine.RaiseFiles(log)
	if err != nil {
		return err
	}

	// One process has the data directory, and nothing is touched before that is sure.
	unlock, err := store.Lock(s.DataDir)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(filepath.Join(s.DataDir, store.RestoringFolder)); err == nil {
		return fmt.Errorf("%s: a restore was interrupted here: remove the directory and restore again", s.DataDir)
	}

	if s.BackupDir != "" {
		if err := os.MkdirAll(s.BackupDir, 0o700); err != nil {
			return fmt.Errorf("cannot make the backup directory: %w", err)
		}
	}

	// What is wrong with the settings shows when the parts are built …
	n, err := newNode(s, log, files)
	if err != nil {
		return exit.Usage("%w", err)
	}

	// … and what is wrong with the address before anything is recovered.
	ln, err := listen(s.Listen)
	if err != nil {
		return err
	}
	b := readBuild()
	log.Info("listening", "addr", ln.Addr().String(), "data_dir", s.DataDir, "node", s.Node,
		"version", b.version, "commit", b.commit, "console", consoleURL(ln.Addr()))

	// From here it serves until it is told to end, and drains.
	err = n.run(ctx, ln)
	if s.Cluster && errors.Is(err, engine.ErrFenced) {
		err = exit.With(exit.StatusTakenOver, err)
	}
	return err
}

// consoleURL is the address of the console for a browser on this machine: one that
// listens on every address is reached by loopback.
func consoleURL(addr net.Addr) string {
	a, ok := addr.(*net.TCPAddr)
	if !ok {
		return ""
	}
	host := a.IP.String()
	switch {
	case a.IP.IsUnspecified() && a.IP.To4() != nil:
		host = "127.0.0.1"
	case a.IP.IsUnspecified():
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(a.Port)) + "/"
}

// listen opens the address of the API.
func listen(addr string) (net.Listener, error) {
	ln, err := net.Listen("tcp", addr)
	switch {
	case err == nil:
		return ln, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("cannot listen on %s: %w; choose another with --listen", addr, syscall.EADDRINUSE)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("cannot listen on %s: %w: ports below 1024 need a privilege", addr, syscall.EACCES)
	}
	return nil, fmt.Errorf("cannot listen on %s: %w", addr, err)
}

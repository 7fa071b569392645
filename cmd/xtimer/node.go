package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/cmd/xtimer/machine"
	"xtimer/cmd/xtimer/settings"
	"xtimer/cmd/xtimer/store"
	"xtimer/engine"
	"xtimer/engine/alert"
	"xtimer/engine/scheduler"
	"xtimer/engine/secret"
	"xtimer/httpapi"
	"xtimer/httpapi/callback"
	"xtimer/httpapi/console"
	"xtimer/wal"
)

// node is a server, put together. Its data directory has the folders of a
// backup, and so a backup becomes one by being copied.
type node struct {
	guard  *wal.Guard
	caller *callback.Caller
	engine *scheduler.Scheduler
	server *httpapi.Server
	cold   engine.Cold
	alerts *alert.Alerter
	noWait bool // exit instead of waiting for tiers at the start
	log    *slog.Logger
}

// newNode builds all parts; nothing is opened before run. files is how many
// files may be open.
func newNode(s *settings.Settings, log *slog.Logger, files uint64) (*node, error) {
	b := readBuild()
	tokens, _ := s.Access()
	calls := int(min(uint64(s.MaxCalls), files/4))
	cold, err := store.LockedCold(s, log)
	if err != nil {
		return nil, err
	}
	objects, vault, err := store.Objects(s, cold, log)
	if err != nil {
		return nil, err
	}
	caller, err := newCaller(s, vault, calls, log)
	if err != nil {
		return nil, err
	}
	journal := newJournal(s, log)
	guard := wal.NewGuard(s.DataDir, nil, log)
	warm, err := store.Warm(s, log)
	if err != nil {
		return nil, err
	}
	counted := metrics.NewSet()
	memory := machine.NewMemoryGuard()
	states := &alertStates{guard: guard, isFull: func() bool { return memory.IsFull(0) }, counted: counted}
	alerts := newAlerter(s, cold, objects, vault, caller, counted, states, log)
	e := scheduler.New(scheduler.Config{
		Ended:             alerts.Ended,
		First:             alerts.First,
		Cold:              cold,
		Objects:           objects,
		Cluster:           newLife(s, cold, warm, log),
		ColdName:          store.ColdName(s),
		Warm:              warm,
		Journal:           journal,
		Caller:            caller,
		Node:              s.Node,
		OperationsDir:     filepath.Join(s.DataDir, store.OperationsFolder),
		MaxCalls:          calls,
		MaxCallsPerApp:    min(s.MaxCallsPerApp, calls),
		MaxCallsPerTarget: min(s.MaxCallsPerTarget, calls),
		Drain:             s.Drain, AwaitClock: newClockGate(s.ClockWait, log).await,
		HistoryRetention: s.HistoryRetention, FinishedRetention: s.FinishedRetention,
		HistorySampled: s.HistorySample > 1,
		DiskFull:       func() bool { return guard.State() != wal.SpaceOK },
		DiskCritical:   func() bool { return guard.State() == wal.SpaceCritical },
		MemoryFull:     memory.IsFull,
		Bodies:         machine.BodyLimit(), MaxWaiting: machine.MaxWaiting(),
		Log: log, Metrics: counted,
	})
	states.engine = e
	server, err := httpapi.NewServer(e, httpapi.ServerConfig{
		Tokens:        tokens,
		Cluster:       newPeers(e.Life()),
		Secrets:       vault,
		Alerts:        alerts,
		CursorKey:     store.CursorKey(s.DataDir, log),
		MaxConns:      int(min(65536, files/2)),
		MaxConnsPerIP: s.ConnectionsPerAddress,
		LocalOnly:     len(tokens) == 0 && !s.Insecure,
		Forbids:       caller.Forbids,
		BackupDir:     s.BackupDir,
		CPUs:          machine.Cores,
		Pprof:         s.Pprof,
		Settings:      s.Shown(),
		Console: func(api http.RoundTripper) http.Handler {
			return console.New(console.Config{API: api, NoRedis: len(s.RedisAddr) == 0, Cluster: s.Cluster, Log: log})
		},
		Version: httpapi.Version{Version: b.version, Commit: b.commit, Go: b.goVersion},
		Metrics: func(w io.Writer) {
			counted.WritePrometheus(w)
			journal.Metrics().WritePrometheus(w)
		},
		Log: log,
	})
	if err != nil {
		return nil, err
	}
	return &node{guard, caller, e, server, cold, alerts, s.NoWait, log}, nil
}

// newCaller builds what makes the calls.
func newCaller(s *settings.Settings, vault *secret.Vault, calls int, log *slog.Logger) (*callback.Caller, error) {
	_, secrets := s.Access()
	return callback.New(callback.Config{
		Version:         readBuild().version,
		Secrets:         secrets,
		Secret:          vault.Value,
		MaxConnsPerHost: min(s.MaxCallsPerTarget, calls),
		MaxIdleConns:    calls,
		Egress:          callback.Egress{Allow: s.EgressAllow, Deny: s.EgressDeny, PublicOnly: s.EgressPublicOnly},
		Log:             log,
	})
}

// backBy is by how much MySQL may go back to an earlier state (a replica is promoted without
// the last commits, a snapshot is restored) without a result being lost.
const backBy = time.Minute

// newJournal builds the journal of a data directory. A store in the data directory does not go
// back without the journal.
func newJournal(s *settings.Settings, log *slog.Logger) *wal.Log {
	keep := backBy
	if s.MySQLDSN == "" {
		keep = 0
	}
	return wal.New(wal.Config{
		Dir:            filepath.Join(s.DataDir, scheduler.JournalFolder),
		MemTable:       machine.MemTable(machine.MemoryLimit()) / 2,
		AcceptDataLoss: s.AcceptDataLoss,
		Keep:           keep,
		Logger:         log,
	})
}

// run serves the API on ln and fires until ctx ends, then drains.
func (n *node) run(ctx context.Context, ln net.Listener) error {
	defer n.caller.Close()
	if a, ok := ln.Addr().(*net.TCPAddr); ok {
		n.caller.AddOwnListener(a.AddrPort())
	}

	// The API answers from the start: while the engine recovers, /livez says that
	// the process lives and /readyz what it is busy with.
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	guarded := make(chan error, 1)
	go func() { guarded <- n.guard.Run(serving) }()
	served := make(chan error, 1)
	go func() { served <- n.server.Serve(serving, ln) }()

	fired := make(chan error, 1)
	firing, stopFiring := context.WithCancel(context.WithoutCancel(ctx))
	defer stopFiring()
	go func() { fired <- n.fire(firing) }()

	// From the end of ctx on, /readyz is 503 and the engine takes nothing new; the
	// API goes last, for people want to see how the drain goes.
	var err error
	select {
	case <-ctx.Done():
		n.server.SetDraining() // first: /readyz tells why it is 503
		stopFiring()
		err = <-fired
	case err = <-fired:
	case err = <-served:
		stopFiring()
		stopServing()
		return errors.Join(err, <-fired, <-guarded)
	}
	stopServing()
	return errors.Join(err, <-served, <-guarded)
}

// fire opens the engine and runs it until ctx ends.
func (n *node) fire(ctx context.Context) error {
	for told := false; ; told = true {
		err := n.engine.Open(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil // told to end before it was open
		}
		if n.noWait || !errors.Is(err, engine.ErrUnavailable) {
			return err
		}
		if !told {
			n.log.Warn("waiting for the tiers; --no-wait exits instead", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
	weak, err := store.Weaknesses(ctx, n.cold)
	if err != nil && ctx.Err() == nil {
		n.log.Warn("cannot see whether the settings of the database keep what is committed", "error", err)
	}
	for _, w := range weak {
		n.log.Warn(w)
	}
	stop := alerting(ctx, n.alerts)
	err = n.engine.Run(ctx)
	stop()
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

package main

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"xtimer/cmd/xtimer/settings"
	"xtimer/engine"
	"xtimer/engine/alert"
	objects "xtimer/engine/object"
	"xtimer/engine/secret"
	"xtimer/httpapi/callback"
	"xtimer/httpapi/notify"
)

// newAlerter builds what tells people of failures. Its messages go where calls may go.
func newAlerter(s *settings.Settings, cold engine.Cold, set *objects.Set, vault *secret.Vault, caller *callback.Caller, counted *metrics.Set, states *alertStates, log *slog.Logger) *alert.Alerter {
	sender := notify.New(notify.Config{Version: readBuild().version, Secret: vault.Value, Allowed: caller.Allowed, Forbids: caller.Forbids})
	var leads func() bool
	now := time.Now
	if s.Cluster {
		leads, now, states.node = states.leads, states.time, s.Node
	}
	return alert.New(alert.Config{
		Leads: leads, Now: now, Objects: set, Cold: cold, Send: sender.Send, States: states.now, Log: log, Metrics: counted, Link: strings.TrimSuffix(s.PublicURL, "/"),
	})
}

// alerting runs an alerter until the function that it returns is called.
func alerting(ctx context.Context, a *alert.Alerter) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = a.Run(ctx) // it has no error
	}()
	return func() {
		cancel()
		<-ended
	}
}

package main

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"xtimer/cmd/xtimer/settings"
	"xtimer/cmd/xtimer/store"
	"xtimer/engine"
	"xtimer/engine/cluster"
)

// newLife is the life of a node among several, over the cold tier that they share; nil: the
// server is alone.
func newLife(s *settings.Settings, cold engine.Cold, log *slog.Logger) *cluster.Config {
	if !s.Cluster {
		return nil
	}
	return &cluster.Config{
		Node: engine.Node{
			Name: s.Node, Life: 1 + rand.Uint64N(1<<64-1), // 0 is no life
			Journal: store.Journal(s.DataDir, log), Weight: s.Weight, Address: s.Advertise,
		},
		Members: store.Members(cold),
		Times:   cluster.TimesOf(s.Lease),
		Boot:    bootClock(),
		After:   time.After,
		Log:     log,
	}
}

// bootClock reads a clock that does not stand still while the machine is suspended. Where the
// system has none, it reads one that does.
func bootClock() func() time.Duration {
	if _, err := sinceBoot(); err != nil {
		began := time.Now()
		return func() time.Duration { return time.Since(began) }
	}
	return func() time.Duration {
		d, _ := sinceBoot() // a clock that could be read once can be read
		return d
	}
}

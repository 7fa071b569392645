package wal

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Config of a Log.
type Config struct {
	// Dir is the journal's own folder, created when missing. No default.
	Dir string
	// AcceptDataLoss opens a journal that is known to have lost its last
	// records. Defaults to false: refuse.
	AcceptDataLoss bool
	// Cache is shared with other stores; the caller keeps its reference.
	// Defaults to an own one of 1 MiB: the journal is read only at start.
	Cache *pebble.Cache
	// Logger defaults to slog.Default().
	Logger *slog.Logger

	// Keep is for how long the results stay that the cold tier has stored, for a cold tier
	// that may go back to an earlier state: at most four memtables of them. Defaults to 0: not.
	Keep time.Duration

	// Spacing is the least time from one commit to the next while nobody waits
	// in Sync. Defaults to 10 ms; negative: none.
	Spacing time.Duration
	// Linger is how long Begins that nobody waits for may wait for company.
	// Defaults to 20 ms; negative: none.
	Linger time.Duration
	// StallAfter is how long a commit may take before Err reports it. Defaults
	// to 10 s.
	StallAfter time.Duration
	// ExitAfter is how long a commit may take before the process ends itself, in
	// steps of StallAfter and without the time in which the process was stopped.
	// Defaults to 60 s.
	ExitAfter time.Duration
	// MemTable is the largest size of a Pebble memtable, in bytes; three are
	// kept. Defaults to 16 MiB. On a small filesystem they are 1/256 of it, at
	// least 256 KiB.
	MemTable uint64

	// FS defaults to the machine's own.
	FS vfs.FS
	// Exit ends the process when the disk can no longer be trusted. Defaults to
	// os.Exit. Whatever called it never goes on, even if Exit returns.
	Exit func(code int)
}

func (c *Config) setDefaults() {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.Spacing, 10*time.Millisecond)
	def(&c.Linger, 20*time.Millisecond)
	def(&c.StallAfter, 10*time.Second)
	def(&c.ExitAfter, 60*time.Second)
	if c.MemTable == 0 {
		c.MemTable = maxMemTable
	}
	if c.FS == nil {
		c.FS = vfs.Default
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
}

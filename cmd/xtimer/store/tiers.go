package store

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"xtimer/cmd/xtimer/machine"
	"xtimer/cmd/xtimer/settings"
	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/tier/local"
	"xtimer/tier/memory"
	"xtimer/tier/mysql"
	"xtimer/tier/redis"
)

// Cold builds the cold tier that the settings name: MySQL where a DSN is
// given, the embedded one in the data directory else.
func Cold(s *settings.Settings) engine.Cold {
	if s.MySQLDSN != "" {
		return mysql.New(mysql.Config{DSN: s.MySQLDSN, SampleSuccesses: s.HistorySample})
	}
	return local.New(local.Config{
		Dir:           filepath.Join(s.DataDir, scheduler.ColdFolder),
		MemTableBytes: machine.MemTable(machine.MemoryLimit()),
		AcceptLoss:    s.AcceptDataLoss,
	})
}

// LockedCold is Cold for a server, which has locked its data directory. It returns an error if the DSN is invalid.
func LockedCold(s *settings.Settings, log *slog.Logger) (engine.Cold, error) {
	if s.MySQLDSN == "" {
		return Cold(s), nil
	}
	if err := mysql.CheckDSN(s.MySQLDSN); err != nil {
		return nil, fmt.Errorf("--mysql-dsn: %w", err)
	}
	return mysql.New(mysql.Config{DSN: s.MySQLDSN, Folder: identity(s.DataDir, log), SampleSuccesses: s.HistorySample}), nil
}

// Members is the table of the nodes that share a cold tier of LockedCold, and that has one.
func Members(cold engine.Cold) engine.Members { return mysql.NewMembers(cold.(*mysql.Store)) }

// Weaknesses says what of the settings of an open cold tier's server weakens it.
func Weaknesses(ctx context.Context, cold engine.Cold) ([]string, error) {
	if db, ok := cold.(*mysql.Store); ok {
		return db.Weaknesses(ctx)
	}
	return nil, nil
}

// Mirror is what the nodes that share a cold tier have finished, on the servers of a warm tier;
// nil: it has none, and whoever takes a node's shards over calls that again.
func Mirror(warm engine.Warm) engine.Mirror {
	if w, ok := warm.(*redis.Warm); ok {
		return w.Mirror()
	}
	return nil
}

// ColdName is what the users of a node call its cold tier.
func ColdName(s *settings.Settings) string {
	if s.MySQLDSN != "" {
		return "MySQL"
	}
	return "the store in " + s.DataDir
}

// Warm builds the warm tier: Redis where an address is given, the memory of
// this process else.
func Warm(s *settings.Settings, log *slog.Logger) (engine.Warm, error) {
	if len(s.RedisAddr) == 0 {
		return memory.NewWarm(), nil
	}
	w, err := redis.New(redis.Config{Addrs: s.RedisAddr, SentinelMaster: s.RedisSentinel, Password: s.RedisPassword, Log: log})
	if err != nil {
		return nil, fmt.Errorf("--redis-addr: %w", err)
	}
	return w, nil
}

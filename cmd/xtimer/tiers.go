package main

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/tier/local"
	"xtimer/tier/memory"
	"xtimer/tier/mysql"
	"xtimer/tier/redis"
)

// newCold builds the cold tier that the settings name: MySQL where a DSN is
// given, the embedded one in the data directory else.
func newCold(s *Settings) engine.Cold {
	if s.MySQLDSN != "" {
		return mysql.New(mysql.Config{DSN: s.MySQLDSN, SampleSuccesses: s.HistorySample})
	}
	return local.New(local.Config{
		Dir:           filepath.Join(s.DataDir, scheduler.ColdFolder),
		MemTableBytes: memTable(cgroupLimit(processGroups, groupTree)),
		AcceptLoss:    s.AcceptDataLoss,
	})
}

// coldName is what the users of a node call its cold tier.
func coldName(s *Settings) string {
	if s.MySQLDSN != "" {
		return "MySQL"
	}
	return "the store in " + s.DataDir
}

// newWarm builds the warm tier: Redis where an address is given, the memory of
// this process else.
func newWarm(s *Settings, log *slog.Logger) (engine.Warm, error) {
	if len(s.RedisAddr) == 0 {
		return memory.NewWarm(), nil
	}
	w, err := redis.New(redis.Config{Addrs: s.RedisAddr, SentinelMaster: s.RedisSentinel, Password: s.RedisPassword, Log: log})
	if err != nil {
		return nil, fmt.Errorf("--redis-addr: %w", err)
	}
	return w, nil
}

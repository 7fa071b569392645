// Package redis is the shared warm tier: the coming hour on Redis ≥ 6, one
// server, Sentinel or Cluster.
//
// Redis is a cache that may lose anything at any time: a flush, an eviction, a
// failover that forgets acknowledged writes, an old snapshot. So what makes a
// minute whole is known in this process, not there:
//
//	per shard    how many writes were acknowledged; Redis counts them too
//	per bucket   count and sum of what was put there
//
// and whatever is read is held against it. What does not match is a gap
// (engine.ErrGap), and the engine reads that minute from the cold tier.
//
// The keys of shard 7 (engine.TimerID.Shard), one slot of a cluster:
//
//	xt:{s7}              the manifest, see script.go
//	xt:{s7}:<minute>:<k> bucket: timer (8 bytes) → its first due in the minute
//	xt:{s7}:d:<hour>     definitions of the timers of an hour's buckets
//
// About 1,000 entries are one bucket; a minute that has more has several. Every
// key expires by itself a quarter of an hour after its minute or hour.
package redis

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"xtimer/engine"
)

var _ engine.Warm = (*Warm)(nil)

// Config of the tier.
type Config struct {
	// Addrs of one server, or of members of a cluster, of which one is enough, or
	// of the Sentinels: host:port each. The first may be a URL, whose user, password
	// and database are of all servers: redis://user:password@host:port/db, rediss://
	// for TLS; ?sentinel_username=…&sentinel_password=… for Sentinels that want them.
	Addrs []string
	// SentinelMaster is the name of the master that the Sentinels watch.
	SentinelMaster string
	// Password of the servers; empty: that of the URL, or none.
	Password string
	Log      *slog.Logger
}

// Warm is the warm tier on Redis. One process writes a database; two would
// take the shards from each other, which costs speed only.
type Warm struct {
	log     *slog.Logger
	options *goredis.UniversalOptions
	clients atomic.Pointer[clients] // others once the one server turns out to be a cluster's
	// patience bounds every call: an attempt and one repeat, of half of it each.
	patience time.Duration

	shards  [engine.Shards]*shard
	entries atomic.Int64
	outage  outage

	mu     sync.Mutex           // taken after a shard's
	sealed map[int64]engine.Set // by due / minuteMs: the shards for which it is whole; guarded by mu, as all that follows
	seals  int                  // calls of Seal
	torn   bool                 // something was lost that was added since the last of them
	lost   int                  // shards that were lost, ever
	told   time.Time            // when that was logged last
}

// patience of a call. An answer takes a millisecond, a bulk one some twenty; half
// a second of silence is an outage, and all the other calls fail at once then.
const patience = time.Second

// New builds the tier; Open connects it.
func New(cfg Config) (*Warm, error) {
	o, err := cfg.options()
	if err != nil {
		return nil, err
	}
	w := &Warm{log: cfg.Log, options: o, patience: patience, sealed: map[int64]engine.Set{}}
	run := rand.Text()
	for i := range w.shards {
		w.shards[i] = newShard(i, run)
	}
	w.clients.Store(newClients(o))
	return w, nil
}

// Open greets the servers; it may be tried again.
func (w *Warm) Open(ctx context.Context) error { return w.greet(ctx) }

// Close leaves what is in Redis to expire.
func (w *Warm) Close() error { return w.clients.Load().close() }

// Len is the number of entries.
func (w *Warm) Len() int { return int(w.entries.Load()) }

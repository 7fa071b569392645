package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// options understands the addresses.
func (c *Config) options() (*goredis.UniversalOptions, error) {
	if len(c.Addrs) == 0 {
		return nil, errors.New("redis: no address")
	}
	o := &goredis.UniversalOptions{MasterName: c.SentinelMaster, Addrs: slices.Clone(c.Addrs)}
	if strings.Contains(c.Addrs[0], "://") {
		if err := readURL(c.Addrs[0], o); err != nil {
			return nil, fmt.Errorf("redis: cannot read the address: %w", err)
		}
	}
	for _, a := range o.Addrs {
		if strings.Contains(a, "://") {
			return nil, errors.New("redis: only the first address may be a URL; it holds for the others, which are host:port")
		}
	}
	o.Password = cmp.Or(c.Password, o.Password)
	return o, nil
}

// errURL says no more, for pieces of the password would be in it.
var errURL = errors.New("it is redis://user:password@host:6379/0, where the password has %23 for #, %2F for /, %3F for ?, %25 for %, %40 for @ and %2C for a comma")

// readURL reads the first address and what it says of all servers. Sentinels may
// have a user and a password of their own, in its query.
func readURL(addr string, o *goredis.UniversalOptions) error {
	u, err := url.Parse(addr)
	if err != nil || strings.Contains(u.Path+u.Fragment, "@") {
		return errURL
	}
	q := u.Query()
	o.SentinelUsername, o.SentinelPassword = q.Get("sentinel_username"), q.Get("sentinel_password")
	q.Del("sentinel_username")
	q.Del("sentinel_password")
	u.RawQuery = q.Encode()
	r, err := goredis.ParseURL(u.String())
	if err != nil {
		return err
	}
	o.Addrs[0], o.DB, o.Username, o.Password, o.TLSConfig = r.Addr, r.DB, r.Username, r.Password, r.TLSConfig
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // of each server the name that it is reached by
	}
	return nil
}

// The library logs what it returns as errors as well.
func init() { logging.Disable() }

// connect makes a client. The library's own defaults repeat writes behind our
// back, ignore contexts and wait for five seconds.
func connect(base *goredis.UniversalOptions, retries int) goredis.UniversalClient {
	o := *base
	o.MaxRetries = retries
	o.ContextTimeoutEnabled = true
	// The context of a call bounds it; these are for what has none.
	o.ReadTimeout, o.WriteTimeout = patience, patience
	o.DialTimeout, o.DialerRetries = 500*time.Millisecond, 1
	// Pipelines have a pool of their own, and they are all that is used.
	o.PoolSize, o.PipelinePoolSize, o.PoolTimeout = 4, 16, 500*time.Millisecond
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return goredis.NewUniversalClient(&o)
}

// clients speak to the servers: writes never repeats what may have arrived, reads
// may.
type clients struct{ writes, reads goredis.UniversalClient }

func newClients(o *goredis.UniversalOptions) *clients { return &clients{connect(o, -1), connect(o, 2)} }

func (c *clients) close() error { return errors.Join(c.writes.Close(), c.reads.Close()) }

// join goes over to the whole cluster when the one server is a member of it: a
// member refuses the slots of the others. What fails here is the greeting's to tell.
func (w *Warm) join(ctx context.Context) {
	c, isSingle := w.clients.Load().reads.(*goredis.Client)
	if !isSingle || field(c.Info(ctx, "server").Val(), "redis_mode") != "cluster" {
		return
	}
	o := *w.options
	o.IsClusterMode = true
	_ = w.clients.Swap(newClients(&o)).close()
}

// greet makes sure that the servers can be used.
func (w *Warm) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	w.join(ctx)
	var mu sync.Mutex // a cluster's masters are asked at the same time
	err := w.servers(ctx, func(ctx context.Context, c *goredis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		addr := c.Options().Addr
		info, err := c.Info(ctx, "server").Result()
		if err != nil {
			return fmt.Errorf("cannot use Redis at %s: %w", addr, err)
		}
		version := field(info, "redis_version")
		major, _, _ := strings.Cut(version, ".")
		if n, _ := strconv.Atoi(major); n < 6 {
			return fmt.Errorf("cannot use Redis at %s, which is version %q: %w", addr, version, errVersion)
		}
		policy, err := c.ConfigGet(ctx, "maxmemory-policy").Result()
		switch {
		case isSilence(err):
			return err
		case err != nil:
			w.log.Warn("cannot read Redis' maxmemory-policy; it should be noeviction", "redis", addr, "error", err)
		case policy["maxmemory-policy"] != "noeviction":
			w.log.Warn("Redis may evict what is due: set maxmemory-policy noeviction; evicted minutes are read from the cold tier",
				"redis", addr, "maxmemory-policy", policy["maxmemory-policy"])
		}
		return nil
	})
	if isSilence(err) && !errors.Is(err, errVersion) {
		return unavailable(err)
	}
	return err
}

var errVersion = errors.New("version 6 or later is needed")

// servers calls f with every master.
func (w *Warm) servers(ctx context.Context, f func(context.Context, *goredis.Client) error) error {
	switch c := w.clients.Load().reads.(type) {
	case *goredis.ClusterClient:
		return c.ForEachMaster(ctx, f)
	case *goredis.Client:
		return f(ctx, c)
	default:
		panic(fmt.Sprintf("BUG: a client of type %T", c))
	}
}

// field reads a line of INFO.
func field(info, name string) string {
	_, rest, _ := strings.Cut(info, name+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

package settings

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"xtimer/cmd/xtimer/span"
)

// Settings are what a node can be told. settingList gives each its name and
// its words; apps and tokens come from the file and the environment alone, for
// a secret on a command line is one that every user of the machine can read.
type Settings struct {
	Listen  string // address of the API; default 127.0.0.1:8080
	DataDir string // default ./data
	Node    string // this node's name; default "xtimer", with Cluster the name of the machine
	Config  string // the YAML file; default none

	ConnectionsPerAddress int // open to the API from one address; default 1,024

	// The shared tiers; without them the embedded ones serve.
	MySQLDSN      string   // user:password@tcp(host:port)/database
	HistorySample int      // with MySQL: keep one in so many successes; default 1, all
	RedisAddr     []string // host:port, several of a cluster or of Sentinels
	RedisSentinel string   // the name of the master that the Sentinels watch
	RedisPassword string

	// One node among several, which share the tiers; see cluster.go.
	Cluster   bool
	Advertise string        // host:port where the other nodes reach the API; default Listen
	Lease     time.Duration // how long a silent node keeps its shards; default 1.8 s
	Weight    int           // the node's part of the shards, relative to the others'; default 1

	MaxCalls          int // in flight; default 8192
	MaxCallsPerApp    int // default 8192
	MaxCallsPerTarget int // default 4096

	HistoryRetention  time.Duration // default 7 days
	FinishedRetention time.Duration // default 7 days
	BackupDir         string        // default none: backups over the API are off
	Drain             time.Duration // default 30 s
	ClockWait         time.Duration // for a synchronised clock at the start; default 30 s, 0: none

	PublicURL     string // where people reach the console, for links in messages; default none
	SecretKeyFile string // has the key that seals secrets; default none: they are stored as they are

	EgressAllow      []netip.Prefix // exceptions from the next two
	EgressDeny       []netip.Prefix // default none
	EgressPublicOnly bool

	NoWait         bool
	Pprof          bool
	Insecure       bool
	AcceptDataLoss bool

	Apps []App // sorted by name

	// from says where each setting came from, by name; absent is the default.
	from map[string]string
}

// App is what is set for one app: who may speak for it, and how its callbacks
// are signed. The name "*" is all apps.
type App struct {
	Name           string
	Tokens         []Token
	WebhookSecrets []string // the first signs, all are sent
	from           string
}

// Token lets its bearer act for an app. Only its hash is kept.
type Token struct {
	SHA256 [32]byte
	Role   string // admin, write or read
	Name   string // may be empty
	from   string
}

// Default are the settings of a node that was told nothing.
func Default() *Settings {
	return &Settings{
		Listen:                "127.0.0.1:8080",
		DataDir:               "./data",
		Node:                  "xtimer",
		ConnectionsPerAddress: 1024,
		HistorySample:         1,
		Lease:                 1800 * time.Millisecond,
		Weight:                1,
		MaxCalls:              8192,
		MaxCallsPerApp:        8192,
		MaxCallsPerTarget:     4096,
		HistoryRetention:      7 * 24 * time.Hour,
		FinishedRetention:     7 * 24 * time.Hour,
		Drain:                 30 * time.Second,
		ClockWait:             30 * time.Second,
		from:                  map[string]string{},
	}
}

// setting is one setting under its name: --data-dir is XTIMER_DATA_DIR in the
// environment and data_dir in the file.
type setting struct {
	name  string
	value settable
	usage string
}

func (s setting) env() string {
	return "XTIMER_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}
func (s setting) key() string { return strings.ReplaceAll(s.name, "-", "_") }

// settingList names the settings, in the order in which people meet them.
func settingList(s *Settings) []setting {
	return []setting{
		{"listen", (*textValue)(&s.Listen), "serve the API on `HOST:PORT`"},
		{"data-dir", (*textValue)(&s.DataDir), "the folder `DIR` for all data: timers and history (unless --mysql-dsn is set), and the journal"},
		{"node", (*textValue)(&s.Node), "the `NAME` of this server, in the log and in the store"},
		{"config", (*textValue)(&s.Config), "read settings from the YAML `FILE`"},
		{"connections-per-address", (*countValue)(&s.ConnectionsPerAddress), "allow `N` connections to the API from one address; a proxy may need more"},
		{"mysql-dsn", (*Secret)(&s.MySQLDSN), "keep timers and history in MySQL: `user:password@tcp(host:port)/database`"},
		{"redis-addr", (*listValue)(&s.RedisAddr), "keep the timers of the coming hour in Redis at `HOST:PORT` or a redis:// URL; separate the addresses of a cluster or of Sentinels with commas"},
		{"redis-sentinel", (*textValue)(&s.RedisSentinel), "the `NAME` of the master that the Sentinels at --redis-addr watch"},
		{"redis-password", (*Secret)(&s.RedisPassword), "the `PASSWORD` of Redis, unless the address is a URL that contains it"},
		{"history-sample", (*countValue)(&s.HistorySample), "with MySQL, keep one in `N` records of tasks that succeeded at the first attempt; keep all other records"},
		{"cluster", (*boolValue)(&s.Cluster), "run as one of several nodes that share the database of --mysql-dsn and the Redis of --redis-addr"},
		{"advertise", (*textValue)(&s.Advertise), "with --cluster, where the other nodes reach this one: `HOST:PORT` (default: --listen)"},
		{"lease", (*span.Value)(&s.Lease), "with --cluster, how long a node that gives no sign of life keeps its timers"},
		{"weight", (*countValue)(&s.Weight), "with --cluster, this node's part of the timers, as a `NUMBER` relative to that of the other nodes"},
		{"max-calls", (*countValue)(&s.MaxCalls), "the limit of calls in flight; at most a quarter of the limit of open files"},
		{"max-calls-per-app", (*countValue)(&s.MaxCallsPerApp), "the limit of calls in flight for one app"},
		{"max-calls-per-target", (*countValue)(&s.MaxCallsPerTarget), "the limit of calls in flight to one scheme://host:port"},
		{"history-retention", (*span.Value)(&s.HistoryRetention), "how long the history of tasks is kept"},
		{"finished-retention", (*span.Value)(&s.FinishedRetention), "how long a finished timer keeps its name"},
		{"backup-dir", (*textValue)(&s.BackupDir), "the folder `DIR` for the backups that xtimer backup and POST /v1/admin/backup make"},
		{"drain", (*span.Value)(&s.Drain), "how long calls in flight may take after SIGTERM"},
		{"clock-wait", (*span.Value)(&s.ClockWait), "how long a start waits for the clock to be synchronised, if the machine has booted since the last finished due or the clock is a minute behind that due; 0: do not wait"},
		{"public-url", (*textValue)(&s.PublicURL), "the `URL` at which people reach the console, for links in the messages of alerts"},
		{"secret-key-file", (*textValue)(&s.SecretKeyFile), "seal the secrets that are stored with the key in this `FILE`: 32 bytes, or these in hex or base64; without it, they are stored as they are"},
		{"egress-allow", (*cidrsValue)(&s.EgressAllow), "call targets in these `CIDRs` even if --egress-deny or --egress-public-only denies them"},
		{"egress-deny", (*cidrsValue)(&s.EgressDeny), "do not call targets in these `CIDRs`"},
		{"egress-public-only", (*boolValue)(&s.EgressPublicOnly), "do not call loopback, private and reserved networks"},
		{"no-wait", (*boolValue)(&s.NoWait), "exit if MySQL is unavailable at the start, instead of waiting for MySQL"},
		{"pprof", (*boolValue)(&s.Pprof), "serve /debug/pprof/"},
		{"insecure", (*boolValue)(&s.Insecure), "lift the restrictions that apply without tokens: serve on any address and under any host name, and accept changes from the console under any host name"},
		{"accept-data-loss", (*boolValue)(&s.AcceptDataLoss), "start even if the end of the journal or of the timer store is lost"},
	}
}

// check finds what is wrong with the settings as a whole.
func (s *Settings) check() error {
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"history-retention", s.HistoryRetention}, {"finished-retention", s.FinishedRetention}, {"drain", s.Drain}} {
		if d.d < time.Second {
			return fmt.Errorf("--%s must be at least 1s, not %v", d.name, d.d)
		}
	}
	for _, n := range []struct {
		name string
		n    int
	}{
		{"history-sample", s.HistorySample},
		{"max-calls", s.MaxCalls},
		{"max-calls-per-app", s.MaxCallsPerApp},
		{"max-calls-per-target", s.MaxCallsPerTarget},
	} {
		if n.n < 1 {
			return fmt.Errorf("--%s must be at least 1, not %d", n.name, n.n)
		}
	}
	if s.DataDir == "" {
		return fmt.Errorf("--data-dir must not be empty")
	}
	if s.ConnectionsPerAddress < 1 {
		return fmt.Errorf("--connections-per-address must be at least 1, not %d", s.ConnectionsPerAddress)
	}
	if s.HistorySample > 1 && s.MySQLDSN == "" {
		return fmt.Errorf("--history-sample applies to history in MySQL: set --mysql-dsn too")
	}
	if s.RedisSentinel != "" && len(s.RedisAddr) == 0 {
		return fmt.Errorf("--redis-sentinel needs the addresses of the Sentinels in --redis-addr")
	}
	if s.Node == "" {
		return fmt.Errorf("--node must not be empty")
	}
	if err := s.checkCluster(); err != nil {
		return err
	}
	return s.checkListen()
}

// checkListen refuses to show an API without a token to other machines.
func (s *Settings) checkListen() error {
	addr, err := net.ResolveTCPAddr("tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", s.Listen, err)
	}
	if s.Insecure || addr.IP.IsLoopback() {
		return nil
	}
	for _, a := range s.Apps {
		if len(a.Tokens) > 0 {
			return nil
		}
	}
	return fmt.Errorf("--listen %s can be reached from other machines and no token is set: "+
		"set a token (XTIMER_TOKENS=app:role:token, or apps: in the file), listen on 127.0.0.1, or pass --insecure", s.Listen)
}

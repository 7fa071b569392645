package main

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// Settings are what a node can be told. settingList gives each its name and
// its words; apps and tokens come from the file and the environment alone, for
// a secret on a command line is one that every user of the machine can read.
type Settings struct {
	Listen  string // address of the API; default 127.0.0.1:8080
	DataDir string // default ./data
	Node    string // this node's name; default "xtimer"
	Config  string // the YAML file; default none

	HistoryRetention  time.Duration // default 7 days
	FinishedRetention time.Duration // default 7 days
	BackupDir         string        // default none: backups over the API are off
	Drain             time.Duration // default 30 s

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
	from   string
}

// defaultSettings are the settings of a node that was told nothing.
func defaultSettings() *Settings {
	return &Settings{
		Listen:            "127.0.0.1:8080",
		DataDir:           "./data",
		Node:              "xtimer",
		HistoryRetention:  7 * 24 * time.Hour,
		FinishedRetention: 7 * 24 * time.Hour,
		Drain:             30 * time.Second,
		from:              map[string]string{},
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
		{"data-dir", (*textValue)(&s.DataDir), "keep everything in `DIR`"},
		{"node", (*textValue)(&s.Node), "this node's `NAME`"},
		{"config", (*textValue)(&s.Config), "read settings from the YAML `FILE`"},
		{"history-retention", (*spanValue)(&s.HistoryRetention), "how long what became of tasks can be asked for"},
		{"finished-retention", (*spanValue)(&s.FinishedRetention), "how long a finished timer keeps its name"},
		{"backup-dir", (*textValue)(&s.BackupDir), "let POST /v1/admin/backup write under `DIR`"},
		{"drain", (*spanValue)(&s.Drain), "how long calls in flight may take after SIGTERM"},
		{"egress-allow", (*cidrsValue)(&s.EgressAllow), "call targets in these `CIDRs` although --egress-deny or --egress-public-only says no"},
		{"egress-deny", (*cidrsValue)(&s.EgressDeny), "do not call targets in these `CIDRs`"},
		{"egress-public-only", (*boolValue)(&s.EgressPublicOnly), "do not call loopback, private and reserved networks"},
		{"no-wait", (*boolValue)(&s.NoWait), "exit when a tier is away at the start instead of waiting for it"},
		{"pprof", (*boolValue)(&s.Pprof), "serve /debug/pprof/"},
		{"insecure", (*boolValue)(&s.Insecure), "serve on a public address although no token is set"},
		{"accept-data-loss", (*boolValue)(&s.AcceptDataLoss), "start although the end of the journal is lost"},
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
	if s.DataDir == "" {
		return fmt.Errorf("--data-dir must not be empty")
	}
	if s.Node == "" {
		return fmt.Errorf("--node must not be empty")
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
		"set one (XTIMER_TOKENS=app:role:token, or apps: in the file), listen on 127.0.0.1, or say --insecure", s.Listen)
}

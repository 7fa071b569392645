package redis

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xtimer/tier/servertest"
)

const user, password = "timers", "open-sesame"

// restrict makes a user who may use the tier's keys and nothing else, and leaves
// those who name no user what the test itself needs.
func restrict(servers ...*servertest.Server) {
	for _, s := range servers {
		s.Do("ACL SETUSER " + user + " on >" + password + " ~xt:* +@all -@dangerous +info +config|get +cluster")
		s.Do("ACL SETUSER default resetkeys -@all +ping +acl +info +cluster +replicaof +psync +replconf")
	}
}

// as opens the tier as that user, and uses it.
func as(t *testing.T, master string, addrs ...string) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	for _, pass := range []string{"", ":" + password + "@"} {
		name := user
		if pass == "" {
			name = "" // nobody in particular
		}
		cfg := Config{Addrs: append([]string{strings.Replace(addrs[0], "://", "://"+name+pass, 1)}, addrs[1:]...), SentinelMaster: master, Log: log}
		w, err := New(cfg)
		must(t, err)
		t.Cleanup(func() { _ = w.Close() })
		w.patience = 10 * time.Second
		err = w.Open(t.Context())
		es := entries(500, 0, 1)
		if pass == "" {
			if err == nil {
				err = w.Add(t.Context(), es)
			}
			if err == nil {
				t.Fatalf("%v: it can be used by anybody: the test says nothing", addrs)
			}
			continue
		}
		must(t, err)
		fill(t, w, es, 0, 2)
		whole(t, w, 0, es, true)
		whole(t, w, 1, es, true)
	}
}

// A user and a password are of every member of a cluster, also of those that are
// found by asking the others.
func TestUserOfACluster(t *testing.T) {
	nodes := servertest.RedisCluster(t)
	restrict(nodes...)
	as(t, "", "redis://"+nodes[1].Addr())
	for _, s := range nodes {
		s.Do("ACL SETUSER default +flushall")
		s.Do("FLUSHALL")
		s.Do("ACL SETUSER default -flushall")
	}
	as(t, "", "redis://"+nodes[0].Addr(), nodes[1].Addr(), nodes[2].Addr())
}

// Behind Sentinels, the master wants the one user, and they another.
func TestUserOfSentinels(t *testing.T) {
	t.Parallel()
	master, replica := servertest.Redis(t, "--repl-diskless-sync-delay", "0"), servertest.Redis(t)
	replica.Do("REPLICAOF " + strings.Replace(master.Addr(), ":", " ", 1))
	await(t, "the replica follows", func() bool { return strings.Contains(master.Do("INFO replication"), "state=online") })
	sentinel := servertest.RedisSentinel(t, master)
	restrict(master)
	sentinel.Do("ACL SETUSER watcher on >hush +@all")
	sentinel.Do("ACL SETUSER default -@all +ping +acl")
	as(t, servertest.SentinelMaster, "redis://"+sentinel.Addr()+"?sentinel_username=watcher&sentinel_password=hush")
}

// Over TLS, each server's certificate is of the name that it is reached by, and one
// that nobody vouches for is refused.
func TestTLS(t *testing.T) {
	cert, key, pool := certificate(t)
	addr := servertest.FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	s := servertest.Redis(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
	restrict(s)
	cfg := Config{Addrs: []string{"rediss://" + user + ":" + password + "@" + addr}, Log: slog.New(slog.DiscardHandler)}
	w, err := New(cfg)
	must(t, err)
	defer w.Close()
	w.patience = time.Minute
	if err := w.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Fatalf("with a certificate that nobody vouches for: %v", err)
	}
	w, err = New(cfg)
	must(t, err)
	defer w.Close()
	w.patience = time.Minute
	w.options.TLSConfig.RootCAs = pool
	w.clients.Store(newClients(w.options))
	must(t, w.Open(t.Context()))
	es := entries(100, 0)
	fill(t, w, es, 0, 1)
	whole(t, w, 0, es, true)
}

// certificate makes one of 127.0.0.1, and the pool that vouches for it.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	pool = x509.NewCertPool()
	if parsed, err := x509.ParseCertificate(der); err == nil {
		pool.AddCert(parsed)
	}
	dir := t.TempDir()
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600))
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret), pool
}

package main

import (
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xtimer/tier/servertest"
)

// TestServersOverTLS: MySQL and Redis with a certificate of one's own authority. The
// machine's authorities do not vouch for it, and a start says so; one that is told of
// it by SSL_CERT_FILE, as docs/mysql-redis.md says, takes both.
func TestServersOverTLS(t *testing.T) {
	cert, key := certificateOfLoopback(t)
	mysql := servertest.MariaDB(t, "--ssl-cert="+cert, "--ssl-key="+key, "--require-secure-transport=ON")
	addr := servertest.FreeAddr(t)
	_, port, _ := net.SplitHostPort(addr)
	servertest.Redis(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
	args := []string{"--data-dir", t.TempDir(), "--mysql-dsn", mysql.DSN("x") + "?tls=true", "--redis-addr", "rediss://" + addr}

	b, err := program(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--no-wait"}, args...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(b), "certificate signed by unknown authority") {
		t.Errorf("nobody vouches for the servers: %v, %s", err, b)
	}
	t.Setenv("SSL_CERT_FILE", cert)
	s := starts(t, args...)
	s.awaitReady()
	// Redis is filled behind the start.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, body := s.get("/readyz")
		if strings.Contains(body, `"cold":true`) && strings.Contains(body, `"warm":true`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("/readyz is %s:\n%s", body, s.lines())
		}
	}
}

// certificateOfLoopback writes the one of net/http's own tests, of 127.0.0.1.
func certificateOfLoopback(t *testing.T) (cert, key string) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	pair := s.TLS.Certificates[0]
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", pair.Certificate[0]), write("key.pem", "PRIVATE KEY", secret)
}

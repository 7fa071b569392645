package settings

import (
	"os"
	"strings"
	"testing"
)

// TestCluster: a node of a cluster says who it is and where it is reached; what would keep
// it from being one is refused.
func TestCluster(t *testing.T) {
	whole := []string{"--cluster", "--mysql-dsn", "a:b@tcp(127.0.0.1:1)/c", "--redis-addr", "127.0.0.1:2"}
	s, err := loaded(t, whole, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if host, _ := os.Hostname(); s.Node != host || s.Advertise != s.Listen {
		t.Errorf("the node is %s at %s", s.Node, s.Advertise)
	}
	if s, err = loaded(t, append(whole, "--node", "a", "--advertise", "10.0.0.1:80"), nil, ""); err != nil || s.Node != "a" || s.Advertise != "10.0.0.1:80" {
		t.Errorf("the node is %s at %s, %v", s.Node, s.Advertise, err)
	}
	for advertised, want := range map[string]string{"[fd00::1]:80": "[fd00::1]:80", "fd00::1:80": "[fd00::1]:80", "a.example.com:80": "a.example.com:80"} {
		if s, err = loaded(t, append(whole, "--advertise", advertised), nil, ""); err != nil || s.Advertise != want {
			t.Errorf("--advertise %s is %s, %v", advertised, s.Advertise, err)
		}
	}
	for _, x := range []struct{ want, args string }{
		{"--cluster needs --mysql-dsn", "--cluster --redis-addr=127.0.0.1:2"},
		{"--cluster needs --redis-addr", "--cluster --mysql-dsn=a:b@tcp(127.0.0.1:1)/c"},
		{"--advertise applies to a node of a cluster", "--advertise=10.0.0.1:80"},
		{"--lease applies to a node of a cluster", "--lease=5s"},
		{"--weight applies to a node of a cluster", "--weight=2"},
		{"--lease must be between", strings.Join(whole, " ") + " --lease=200ms"},
		{"--lease must be between", strings.Join(whole, " ") + " --lease=2m"},
		{"--weight must be between", strings.Join(whole, " ") + " --weight=0"},
		{"--node must have at most", strings.Join(whole, " ") + " --node=" + strings.Repeat("a", 65)},
		{"too many colons", strings.Join(whole, " ") + " --advertise=fd00::"},
		{"missing port", strings.Join(whole, " ") + " --advertise=here"},
		{"is no address that other nodes can reach", strings.Join(whole, " ") + " --insecure --listen=:8080"},
		{"is no address that other nodes can reach", strings.Join(whole, " ") + " --advertise=127.0.0.1:0"},
	} {
		if _, err := loaded(t, strings.Fields(x.args), nil, ""); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", x.args, err, x.want)
		}
	}
}

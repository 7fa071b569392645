package servertest

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// RedisCluster starts three masters that share the slots, and returns when each
// of them sees the whole cluster. It takes 2 to 3 s: a master that starts refuses
// for two.
func RedisCluster(t testing.TB) []*Server {
	t.Helper()
	const n, slots = 3, 16384
	var nodes []*Server
	var buses []string
	for i := range n {
		bus := strconv.Itoa(reservePort(t))
		s := Redis(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-port", bus)
		s.Do(fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d\nCLUSTER SET-CONFIG-EPOCH %d", i*slots/n, (i+1)*slots/n-1, i+1))
		// Every pair is introduced: gossip would take seconds more.
		for j, other := range nodes {
			host, port, _ := net.SplitHostPort(other.Addr())
			s.Do(fmt.Sprintf("CLUSTER MEET %s %s %s", host, port, buses[j]))
		}
		nodes, buses = append(nodes, s), append(buses, bus)
	}
	for _, s := range nodes {
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			info := s.Do("CLUSTER INFO")
			if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", n)) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the cluster is not whole after %v:\n%s", patience, info)
			}
		}
	}
	return nodes
}

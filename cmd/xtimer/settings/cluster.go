package settings

import (
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// The bounds of --lease. With a shorter one a busy machine that beats late loses its shards;
// a longer one is how late calls are after the death of a node.
const (
	leastLease = time.Second
	mostLease  = time.Minute
)

// fillCluster completes what a server with --cluster was not told: as other nodes see it.
func (s *Settings) fillCluster() error {
	if !s.Cluster {
		return nil
	}
	if s.from["node"] == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("--cluster needs --node: the name of this machine cannot be read: %w", err)
		}
		s.Node = host
	}
	if s.Advertise == "" {
		s.Advertise = s.Listen
	}
	// Kubernetes tells a pod its IPv6 address without brackets.
	if i := strings.LastIndexByte(s.Advertise, ':'); i > 0 {
		if ip := net.ParseIP(s.Advertise[:i]); ip != nil && ip.To4() == nil {
			s.Advertise = net.JoinHostPort(s.Advertise[:i], s.Advertise[i+1:])
		}
	}
	return nil
}

// checkCluster finds what is wrong with the settings of a node among several.
func (s *Settings) checkCluster() error {
	if !s.Cluster {
		for _, name := range []string{"advertise", "lease", "weight"} {
			if s.from[name] != "" {
				return fmt.Errorf("--%s applies to a node of a cluster: set --cluster too", name)
			}
		}
		return nil
	}
	switch {
	case s.MySQLDSN == "":
		return fmt.Errorf("--cluster needs --mysql-dsn: the nodes share a database")
	case len(s.RedisAddr) == 0:
		return fmt.Errorf("--cluster needs --redis-addr: the nodes share a Redis")
	case s.Lease < leastLease || s.Lease > mostLease:
		return fmt.Errorf("--lease must be between %v and %v, not %v", leastLease, mostLease, s.Lease)
	case s.Weight < 1 || s.Weight > 1000:
		return fmt.Errorf("--weight must be between 1 and 1000, not %d", s.Weight)
	case len(s.Node) > 64:
		return fmt.Errorf("--node must have at most 64 bytes in a cluster, not %d", len(s.Node))
	case len(s.Advertise) > 255:
		return fmt.Errorf("--advertise must have at most 255 bytes, not %d", len(s.Advertise))
	}
	host, port, err := net.SplitHostPort(s.Advertise)
	if err != nil {
		return fmt.Errorf("--advertise %s: %w", s.Advertise, err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() || port == "0" {
		return fmt.Errorf("--advertise %s is no address that other nodes can reach: set --advertise to the address of this machine, and the port of --listen", s.Advertise)
	}
	return nil
}

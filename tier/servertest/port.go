package servertest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreeAddr is a loopback host:port that stays this test's, for a server that
// the test starts, ends and starts again by itself.
func FreeAddr(t testing.TB) string {
	t.Helper()
	return loopback(reservePort(t))
}

// reservePort finds a TCP port that is free and keeps it for this test, also
// while the server on it is down.
//
// It lies below the ports that the kernel gives to outgoing connections: a
// client that dials a server that is down would sooner or later connect to
// itself and hold the port. The reservation is the UDP port of the same number:
// other test processes look there first, and the kernel ends it with the process.
func reservePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 10000 + rand.IntN(20000)
		addr := loopback(port)
		reservation, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		if ln, err := net.Listen("tcp", addr); err == nil {
			ln.Close()
			t.Cleanup(func() { reservation.Close() })
			return port
		}
		reservation.Close()
	}
	t.Fatal("no port is free between 10000 and 30000")
	return 0
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

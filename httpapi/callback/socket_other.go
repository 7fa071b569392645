//go:build !linux

package callback

import (
	"net"

	"xtimer/engine"
)

// exchanges tells that a link can exchange.
const exchanges = false

// socket would look at a TCP socket; where it cannot, a kept connection that was
// closed is found out by writing to it.
type socket struct{}

func (*link) open(net.Conn) error { return nil }
func (*link) quiet() bool         { return true }

func (*link) exchange(*engine.Call, []byte, []byte) (int, error) {
	panic("BUG: this system has no exchange")
}

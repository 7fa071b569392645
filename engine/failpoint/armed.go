//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Armed tells that this program was built to fail on demand.
const Armed = true

// armed is what XTIMER_FAILPOINT=name:action:nth asks for: at the nth time that
// the place is passed, kill (as kill -9), panic, or sleep for a second.
var armed = func() (f struct {
	name, action string
	left         atomic.Int64
},
) {
	part := strings.Split(os.Getenv("XTIMER_FAILPOINT"), ":")
	if len(part) != 3 {
		return
	}
	nth, err := strconv.ParseInt(part[2], 10, 64)
	if err != nil {
		panic("XTIMER_FAILPOINT is not name:action:nth: " + err.Error())
	}
	f.name, f.action = part[0], part[1]
	f.left.Store(nth)
	return
}()

// Hit does what the environment asks for at this place.
func Hit(name string) {
	if name != armed.name || armed.left.Add(-1) != 0 {
		return
	}
	fmt.Fprintf(os.Stderr, "FAILPOINT %s: %s\n", name, armed.action)
	switch armed.action {
	case "kill":
		p, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = p.Kill()
		}
		if err != nil {
			panic(err)
		}
		select {}
	case "panic":
		panic("failpoint " + name)
	case "sleep":
		time.Sleep(time.Second)
	default:
		panic("XTIMER_FAILPOINT knows kill, panic and sleep, not " + armed.action)
	}
}

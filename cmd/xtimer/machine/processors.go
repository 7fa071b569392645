package machine

import (
	"os"
	"runtime"
)

// Cores is how many the machine, or the control group, gives this process.
var Cores = runtime.GOMAXPROCS(0)

// spareProcessors are what Go gets beyond the cores. A thread that stands in a
// system call keeps one of Go's processors until Go's monitor notices, which itself
// sleeps for up to 10 ms: a sync, or a write while the machine gave the core to
// somebody else. With two processors on two cores both were kept several times a
// second, and what was due waited, with a core that did nothing. With two more the
// kernel says which thread runs: of 10,000 one-shots a second p99 was 5 to 20 ms
// instead of 20 to 50, and 0.84 of the bare loop were sustained instead of 0.63
// (medians of runs in turns; one more did little, six more did no better).
const spareProcessors = 2

// TuneProcessors is the one place where GOMAXPROCS is set; that of the environment
// wins. Go no longer follows a control group whose limit changes.
func TuneProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(Cores + spareProcessors)
	}
}

package machine

import (
	"os"
	"runtime"
	"strconv"
	"testing"
)

// Go gets two processors beyond the cores, unless the environment says how many.
func TestProcessors(t *testing.T) {
	was := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(was)
	t.Setenv("GOMAXPROCS", strconv.Itoa(was))
	if TuneProcessors(); runtime.GOMAXPROCS(0) != was {
		t.Errorf("%d processors, but the environment says %d", runtime.GOMAXPROCS(0), was)
	}
	os.Unsetenv("GOMAXPROCS")
	if TuneProcessors(); runtime.GOMAXPROCS(0) != Cores+spareProcessors {
		t.Errorf("%d processors on %d cores", runtime.GOMAXPROCS(0), Cores)
	}
}

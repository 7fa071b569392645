package bench

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// seedOf is what a trial draws from: XTIMER_SEED, or the time. One that fails
// prints it. The draws are then the same again; what the machine does is not.
func seedOf(t testing.TB) uint64 {
	seed, err := strconv.ParseUint(os.Getenv("XTIMER_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("XTIMER_SEED=%d draws the same again", seed)
		}
	})
	return seed
}

// draw is the chance of one goroutine of a trial.
func draw(seed, goroutine uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, goroutine)) }

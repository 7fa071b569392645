package redis

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"xtimer/engine"
)

// pause is for how long calls are refused after one that was not answered: those
// who waited for the same shard must not wait for the same server in turn.
const pause = 500 * time.Millisecond

// outage is the time in which Redis does not answer.
type outage struct{ until atomic.Int64 } // Unix ns

var errOutage = errors.New("it has not answered of late")

func (o *outage) begin() { o.until.Store(time.Now().Add(pause).UnixNano()) }

// refusal is the error of a call that would wait in vain; nil otherwise.
func (o *outage) refusal() error {
	if time.Now().UnixNano() < o.until.Load() {
		return errOutage
	}
	return nil
}

// isSilence reports whether an error is of the network, not an answer.
func isSilence(err error) bool {
	var answer goredis.Error
	return err != nil && !errors.As(err, &answer)
}

// unavailable is what the engine understands.
func unavailable(err error) error {
	return fmt.Errorf("cannot use Redis: %w: %w", engine.ErrUnavailable, err)
}

package redis

import (
	"math"
	"time"

	"xtimer/engine"
)

// updates remembers which versions Update told of late, so that an Add which read
// its definition before cannot bring a former one back. They are kept for
// updatesKept at least, far longer than anyone holds what he read.
type updates struct {
	now, before map[engine.TimerID]uint32
	since       time.Time // of now
}

const updatesKept = 5 * time.Minute

// gone is the version of a timer that is deleted.
const gone = math.MaxUint32

func (u *updates) note(id engine.TimerID, version uint32) {
	if time.Since(u.since) > updatesKept {
		u.now, u.before, u.since = map[engine.TimerID]uint32{}, u.now, time.Now()
	}
	u.now[id] = max(u.now[id], version)
}

// newer reports whether a later version than this one is known.
func (u *updates) newer(id engine.TimerID, version uint32) bool {
	return u.now[id] > version || u.before[id] > version
}

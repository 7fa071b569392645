package quota

import (
	"fmt"
	"time"

	"xtimer/engine"
)

// refusal is the error of a change that a quota does not allow.
type refusal struct {
	what  string // the field of the quota
	fault *engine.Fault
}

// tooFast refuses a create that may be made after a wait.
func tooFast(app string, most int, wait time.Duration) *refusal {
	return &refusal{"creates", &engine.Fault{
		Kind: engine.FaultTooMany, Code: "rate_limited",
		Detail: fmt.Sprintf("the quota of app %s allows %d creates a second: retry later", app, most),
		Rate:   &engine.RateLimit{Name: "creates", Most: most, Window: time.Second, Wait: wait},
	}}
}

// noRoom refuses a change until something of the app was deleted or has ended.
func noRoom(app, what string, most, has, more int64) *refusal {
	return &refusal{what, &engine.Fault{
		Kind: engine.FaultExceeded, Code: "quota_exceeded",
		Detail: fmt.Sprintf("the quota of app %s allows %d %s: the app has %d, and the request adds %d", app, most, what, has, more),
	}}
}

package quota

import (
	"fmt"
	"time"

	"xtimer/engine"
)

// tooFast refuses a create that may be made after a wait.
func tooFast(app string, most int, wait time.Duration) error {
	return &engine.Fault{
		Kind: engine.FaultTooMany, Code: "rate_limited",
		Detail: fmt.Sprintf("the quota of app %s allows %d creates a second: retry later", app, most),
		Rate:   &engine.RateLimit{Name: "creates", Most: most, Window: time.Second, Wait: wait},
	}
}

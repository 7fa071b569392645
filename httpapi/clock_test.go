package httpapi

import (
	"context"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/scheduler"
)

// aheadCold is a cold tier whose watermarks a clock has left that was 8 h ahead.
type aheadCold struct{ engine.Cold }

func (c aheadCold) Take(ctx context.Context, owner string) ([]engine.Shard, engine.TimerID, error) {
	shards, newest, err := c.Cold.Take(ctx, owner)
	for i := range shards {
		shards[i].Watermark = time.Now().Add(8 * time.Hour).UnixMilli()
	}
	return shards, newest, err
}

// A clock that is behind is told of by all who are asked, the probe stays ready, and a
// reset by an admin of all apps ends it.
func TestClockReset(t *testing.T) {
	e, open := builtEngineOn(t, answers(200), nil, func(c *scheduler.Config) { c.Cold = aheadCold{c.Cold} })
	open()
	n := serve(t, e, ServerConfig{Tokens: tokens()})
	told := func(want bool) {
		t.Helper()
		for _, path := range []string{"/readyz", "/v1/stats"} {
			if got := n.do("GET", path, "").want(200); strings.Contains(string(got.body), `{"code":"clock_behind"`) != want {
				t.Errorf("%s: %s", path, got.body)
			}
		}
		got := n.do("GET", "/v1/system", "").want(200)
		if strings.Contains(string(got.body), `"clock_behind_seconds":0,`) == want {
			t.Errorf("/v1/system: %s", got.body)
		}
	}
	n.token = "root"
	told(true)
	n.do("POST", "/v1/system/clock/reset?dry_run=true", "").want(200)
	told(true)
	n.token = "a-admin"
	n.do("POST", "/v1/system/clock/reset", "").want(403)
	n.token = "root"
	n.do("POST", "/v1/system/clock/reset", `{"x":1}`).want(400)
	if got := n.do("POST", "/v1/system/clock/reset", "").want(200); got.str("action") != "clock_reset" || !strings.Contains(string(got.body), `"ended":true`) {
		t.Errorf("%s", got.body)
	}
	told(false)
}

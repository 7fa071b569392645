package figures

import (
	"strings"
	"testing"
	"time"

	"xtimer/cmd/xtimer/golden"
	api "xtimer/httpapi/client"
)

func TestTables(t *testing.T) {
	at := time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)
	busy := api.AppFigures{App: "billing", Waiting: 4, InFlight: 2, MoreTargets: 3}
	busy.Timers.Enabled = 12
	busy.LastMinute = api.Outcomes{FiresPerSecond: 1.5, LatenessP50MS: new(0.4), LatenessP99MS: new(1.9)}
	busy.LastHour = api.Outcomes{Succeeded: 88, Failed: 1, Dead: 2}
	busy.Targets = []api.TargetFigures{
		{Target: "https://example.com:443", Answering: true, InFlight: 2, AttemptsOK: 88, TookP50MS: new(11.0), TookP99MS: new(30.25)},
		{Target: "http://127.0.0.1:9", Waiting: 4, AttemptsFailed: 9},
	}
	var out strings.Builder
	if err := tableApps(&out, &api.AppPage{Now: at.Add(time.Hour), Since: at, Apps: []api.AppFigures{busy, {App: "订单"}}}, "utc"); err != nil {
		t.Fatal(err)
	}
	golden.Hold(t, "testdata/top.txt", out.String())

	s := &api.Stats{DueByMinute: []int64{1, 2}, UptimeSeconds: 90, Tiers: map[string]bool{"cold": true, "warm": false}, Warnings: []api.Warning{{Code: "late", Detail: "a\ntarget"}}}
	s.Timers.Enabled, s.Tasks.Overdue, s.Tasks.OldestOverdueMS = 3, 1, 1500
	s.Tasks.SinceStart = map[string]int64{"succeeded": 5, "dead": 0}
	out.Reset()
	if err := sheetStats(&out, s); err != nil {
		t.Fatal(err)
	}
	golden.Hold(t, "testdata/stats.txt", out.String())
}

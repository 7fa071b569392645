package console

import (
	"testing"
	"time"

	"xtimer/httpapi/client"
)

// TestRunsChart: what was called is in it, well or not; a target that was never
// reached is no reason to leave a run out.
func TestRunsChart(t *testing.T) {
	due, late := time.UnixMilli(1_800_000_000_000), 0.25
	var c runsChart
	for _, task := range []client.Task{
		{Due: due, Status: client.Succeeded, LatenessMS: &late, Attempts: make([]client.Attempt, 1)},
		{Due: due, Status: client.Failed, LatenessMS: &late, Attempts: make([]client.Attempt, 1)},
		{Due: due, Status: client.Dead, Attempts: []client.Attempt{{Started: due.Add(7 * time.Millisecond), ErrorClass: "refused"}, {Started: due.Add(time.Hour)}}},
		{Due: due, Status: client.Skipped},
	} {
		c.add(&task)
	}
	if got := text(c.Columns()); got != "[[1800000000,1800000000,1800000000],[0.25,null,null],[null,0.25,7]]" {
		t.Error(got)
	}
}

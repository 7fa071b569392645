package console

import (
	"testing"
	"time"

	"xtimer/httpapi/client"
)

// TestRunsChart: every task that has ended is in it. One that was not sent has no lateness,
// and a mark of its own instead of a place on the scale.
func TestRunsChart(t *testing.T) {
	due, late := time.UnixMilli(1_800_000_000_000), 0.25
	var c runsChart
	for _, task := range []client.Task{
		{Due: due, Status: client.Succeeded, LatenessMS: &late, Attempts: make([]client.Attempt, 1)},
		{Due: due, Status: client.Failed, LatenessMS: &late, Attempts: make([]client.Attempt, 1)},
		{Due: due, Status: client.Dead, Attempts: []client.Attempt{{Started: due.Add(7 * time.Millisecond), ErrorClass: "refused"}, {Started: due.Add(time.Hour)}}},
		{Due: due, Status: client.Skipped},
		{Due: due, Status: client.Waiting},
	} {
		c.add(&task)
	}
	if got := text(c.Columns()); got != "[[1800000000,1800000000,1800000000,1800000000],[0.25,null,null,null],[null,0.25,null,null],[null,null,1,1]]" {
		t.Error(got)
	}
}

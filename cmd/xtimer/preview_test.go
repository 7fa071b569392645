package main

import (
	"strings"
	"testing"
	"time"

	"xtimer/cmd/xtimer/golden"
	"xtimer/engine"
)

func TestPreview(t *testing.T) {
	var out strings.Builder
	now := time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC) // a Friday
	err := preview(&out, engine.Schedule{Cron: "0 9 * * MON-FRI", TimeZone: "Asia/Shanghai"}, 3, now)
	if err != nil {
		t.Fatal(err)
	}
	golden.Hold(t, "testdata/preview.txt", out.String())
}

func TestPreviewRefuses(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		_, errs, status := runs(t, append([]string{"preview"}, args...)...)
		if status == 0 || !strings.Contains(errs, want) {
			t.Errorf("preview %v: status %d, %q; want %q", args, status, errs, want)
		}
	}
	f("schedule.cron", "61 * * * *")
	f("schedule.time_zone", "* * * * *", "--time-zone", "Mars/Olympus")
	f("takes CRON, not 5 arguments", "*", "*", "*", "*", "*")
	f("n: 0 is not in the range 1 to 1000", "* * * * *", "--n", "0")
}

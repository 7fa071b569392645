package main

import (
	"strings"
	"testing"
	"time"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/golden"
	"xtimer/cmd/xtimer/terminal"
	"xtimer/engine"
)

func TestPreview(t *testing.T) {
	var out strings.Builder
	now := time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC) // a Friday
	s := engine.Schedule{Cron: "0 9 * * MON-FRI", TimeZone: "Asia/Shanghai"}
	if err := preview(&out, terminal.Table, s, 3, now); err != nil {
		t.Fatal(err)
	}
	golden.Hold(t, "testdata/preview.txt", out.String())
	for output, want := range map[terminal.Output]string{
		terminal.JSON: `{
  "sentence": "At 09:00, Monday to Friday, Asia/Shanghai",
  "dues": [
    "2026-11-23T01:00:00.000Z"
  ],
  "warnings": []
}
`,
		terminal.Name: "2026-11-23T01:00:00.000Z\n",
	} {
		out.Reset()
		if err := preview(&out, output, s, 1, now); err != nil || out.String() != want {
			t.Errorf("-o %s: %v, %q; want %q", output, err, out.String(), want)
		}
	}
}

func TestPreviewRefuses(t *testing.T) {
	f := func(want string, args ...string) {
		t.Helper()
		_, errs, status := runs(t, append([]string{"preview"}, args...)...)
		if status != exit.StatusUsage || !strings.Contains(errs, want) {
			t.Errorf("preview %v: status %d, %q; want %q", args, status, errs, want)
		}
	}
	f("CRON: minute field: 61", "61 * * * *")
	f("--time-zone: the IANA", "* * * * *", "--time-zone", "Mars/Olympus")
	f("takes CRON, not 5 arguments", "*", "*", "*", "*", "*")
	f("--n: 0 is not in the range 1 to 1000", "* * * * *", "--n", "0")
}

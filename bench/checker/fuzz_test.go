package checker

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"xtimer/engine"
)

// FuzzCalendar: what the service takes, the oracle takes, and they are of one mind
// about when it is due.
func FuzzCalendar(f *testing.F) {
	for i, spec := range []string{
		"* * * * *", "*/7 3-9/2 1,15 * MON-FRI", "0 30 2 * * SUN", "@daily", "5/20 * * * * ?", "0 0 29 FEB 1", "0 0 1-31/2 * 0-6", "9 * 13 * *", "0 0 * * 7",
	} {
		f.Add(spec, []string{"", "Europe/Berlin", "America/New_York", "Asia/Kolkata"}[i%4], simStart+int64(i)*40*86_400_000)
	}
	f.Fuzz(func(t *testing.T, spec, zone string, from int64) {
		from = simStart + (from&(1<<40-1))%(3*365*86_400_000)
		x := &engine.Timer{Definition: engine.NewDefinition(), ID: 1, CreatedAt: from}
		x.App, x.Name, x.Callback.URL = "a", "n", "http://h/"
		x.Schedule = engine.Schedule{Cron: spec, TimeZone: zone}
		if x.Validate() != nil || engine.Resolve(x, nil, from) != nil {
			return
		}
		p, err := engine.PlanOf(x)
		if err != nil {
			t.Fatal(err)
		}
		c, err := parseCalendar(spec, zone)
		if err != nil {
			t.Fatalf("the service takes %q in %q: %v", spec, zone, err)
		}
		to := from + 2*86_400_000 // and a hundred dues at most
		var want []int64
		for due, ok := p.Next(from); ok && due <= to; due, ok = p.Next(due) {
			if want = append(want, due); len(want) == 100 {
				to = due
			}
		}
		if got := c.scan(from, to); !slices.Equal(got, want) {
			t.Fatalf("%q in %q from %d to %d: the oracle has %v, the service %v", spec, zone, from, to, got, want)
		}
	})
}

// FuzzReadLines: a log is refused, or all of it is read: it is the same when it is
// written again, and something more behind it is not passed over.
func FuzzReadLines(f *testing.F) {
	f.Add("{\"fault\":\"kill\",\"from\":1,\"to\":2}\n{\"from\":3}\n")
	f.Add("{}{}\nnull")
	f.Add("{\"from\":1}\n]")
	f.Add("")
	name := filepath.Join(f.TempDir(), "log")
	f.Fuzz(func(t *testing.T, text string) {
		read := func(text string) (lines []Broken, err error) {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return lines, readLines(name, &lines)
		}
		lines, err := read(text)
		if err != nil {
			return
		}
		for _, more := range []string{"]", "}", "{", "\x00"} {
			if _, err := read(text + "\n" + more); err == nil {
				t.Fatalf("%q behind it is passed over", more)
			}
		}
		var again []Broken
		if err := writeLines(name, lines); err != nil {
			t.Fatal(err)
		}
		if err := readLines(name, &again); err != nil || !reflect.DeepEqual(lines, again) {
			t.Fatalf("%+v is written, and %+v read, %v", lines, again, err)
		}
	})
}

package plan

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"xtimer/engine"
)

func TestParseCronRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		"":                                     "0 fields",
		"   ":                                  "0 fields",
		"* * * *":                              "4 fields",
		"* * * * * * *":                        "7 fields",
		"TZ=UTC":                               "time_zone",
		"TZ=":                                  "time_zone",
		"CRON_TZ=Asia/Tokyo":                   "time_zone",
		"TZ=UTC 0 0 * * *":                     "time_zone",
		"\x00 * * * *":                         "not allowed",
		"* * * * \xff":                         "not allowed",
		"* * * * *\n":                          "not allowed",
		", * * * * *":                          "empty item",
		", * * * *":                            "empty item",
		"0 , * * *":                            "empty item",
		"0,,5 * * * *":                         "empty item",
		"*/61 * * * *":                         "from 1 to 59",
		"*/60 * * * *":                         "from 1 to 59",
		"*/0 * * * *":                          "from 1 to 59",
		"*/ * * * *":                           "from 1 to 59",
		"*/5/5 * * * *":                        "from 1 to 59",
		"*-5 * * * *":                          "not a number",
		"+5 * * * *":                           "not allowed",
		"-5 * * * *":                           "not a number",
		"5- * * * *":                           "not a number",
		"1-2-3 * * * *":                        "not a number",
		"60 * * * *":                           "not in the range 0 to 59",
		"* 24 * * *":                           "not in the range 0 to 23",
		"* * 0 * *":                            "not in the range 1 to 31",
		"* * 32 * *":                           "not in the range 1 to 31",
		"* * * 13 *":                           "not in the range 1 to 12",
		"* * * * 8":                            "not in the range 0 to 7",
		"* * * * FRI-MON":                      "backwards",
		"50-10 * * * *":                        "backwards",
		"99999999999999999999 * * *":           "4 fields",
		"99999999999999999999 * * * *":         "not a number",
		"0 0 * * MONDAY":                       "a name such as",
		"0 0 * FOO *":                          "a name such as",
		"0 0 * ANF *":                          "a name such as",
		"@reboot":                              "not one of",
		"@every 5s":                            "not one of", // not a calendar: see parseEvery
		"@":                                    "not one of",
		strings.Repeat("1,", 70) + "1 * * * *": "at most 128",
	} {
		if _, err := parseCron(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want … %s …", spec, err, want)
		}
	}
}

// Two ways to write the same.
func TestParseCronSame(t *testing.T) {
	for _, c := range [][2]string{
		{"0 0 * * 7", "0 0 0 * * 0"},
		{"0 0 * * 5-7", "0 0 * * 0,5,6"},
		{"0 0 * * 1-7/2", "0 0 * * 0,1,3,5"},
		{"0 0 * * 7/2", "0 0 * * SUN"},
		{"0 0 * * 3/2", "0 0 * * WED,FRI"},
		{"@daily", "0 0 * * *"},
		{"@Hourly", "0 * * * *"},
		{" 5\t4  * *   mon ", "5 4 * * 1"},
		{"0 0 ? * 1", "0 0 * * 1"},
		{"0 0 1 jan-mar ?", "0 0 1 1-3 *"},
		{"0 0-23 * * *", "0 * * * *"},
	} {
		a, err := parseCron(c[0])
		b, err2 := parseCron(c[1])
		if err != nil || err2 != nil {
			t.Errorf("%q, %q: %v, %v", c[0], c[1], err, err2)
			continue
		}
		x, y := *a.set, *b.set
		for _, s := range []*uint64{&x.Hour, &y.Hour, &x.Minute, &y.Minute} {
			*s &^= cronStar
		}
		if x != y || a.fixedHour != b.fixedHour {
			t.Errorf("%q = %+v, %q = %+v", c[0], a, c[1], b)
		}
	}
}

// Nothing that a stranger sends may keep us for long: 10 ms is the bound, and
// it was seconds or for ever in the library alone.
func TestHostileSchedules(t *testing.T) {
	now := time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC).UnixMilli()
	zones := []string{"", "UTC", "America/New_York", "Pacific/Apia", "Local", "../../etc/passwd", "/etc/passwd", "Europe//Berlin", "right/UTC", "Nowhere/City", strings.Repeat("a/", 100)}
	specs := []string{", * * * * *", "TZ=UTC", "TZ=", "CRON_TZ=Asia/Tokyo", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 29 2 *", "0 9 31 12 *", "* * * * * *", "@every -5s", "@every 2562047h", "@every 1ns", "@every", "0 0 1 1 *", "59 59 23 31 12 *"}
	instants := []int64{0, -1, 1, -1 << 63, 1<<63 - 1, 1e18, earliest, now, engine.MaxDue - 1, engine.MaxDue, 1293840000000}
	for _, zone := range zones {
		for _, spec := range specs {
			for _, at := range instants {
				s := engine.Schedule{Cron: spec, TimeZone: zone}
				took := 2 * hangs
				for try := 0; took > hangs && try < 5; try++ { // the collector may have worked on this thread
					took = spent(func() {
						PreviewSchedule(s, 3, at)
						d := engine.Definition{Schedule: s}
						Validate(&d)
						tm := engine.Timer{Definition: d, CreatedAt: at}
						if Resolve(&tm, nil, at) == nil {
							p, _ := Of(&tm)
							p.Next(at)
						}
					})
				}
				if took > hangs {
					t.Errorf("%q in %q at %d took %v", spec, zone, at, took)
				}
			}
		}
	}
}

// hangs is the longest that anything may take.
const hangs = 10 * time.Millisecond

// spent is the processor time of some work on its own thread: what else a busy
// machine does is not its.
func spent(work func()) time.Duration {
	const thread = 1 // RUSAGE_THREAD
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var from, to syscall.Rusage
	if syscall.Getrusage(thread, &from) != nil {
		return 0
	}
	work()
	if syscall.Getrusage(thread, &to) != nil {
		return 0
	}
	return time.Duration(to.Utime.Nano() + to.Stime.Nano() - from.Utime.Nano() - from.Stime.Nano())
}

func FuzzCronSpec(f *testing.F) {
	for _, s := range oracleSpecs {
		f.Add(s, "Europe/Berlin", int64(1774659600000))
	}
	for _, s := range []string{", * * * * *", "TZ=UTC", "0 0 30 2 *", "@every 1s", "@daily", "*/61 * * * *", "* * * * 1-7/2"} {
		f.Add(s, "Pacific/Apia", int64(1322697600000))
	}
	f.Fuzz(func(t *testing.T, spec, zone string, at int64) {
		start := time.Now()
		c, err := calendarOf(spec, zone)
		if err != nil {
			return
		}
		at = earliest + int64(uint64(at)%uint64(engine.MaxDue-earliest))
		n := c.compute(at)
		if n == never {
			return
		}
		if n <= at || n%1000 != 0 || n > engine.MaxDue {
			t.Fatalf("%q in %q: next(%d) = %d", spec, zone, at, n)
		}
		if p := c.prev(n, earliest-1); p != n {
			t.Fatalf("%q in %q: prev(%d) = %d", spec, zone, n, p)
		}
		if m := c.compute(n - 1); m != n {
			t.Fatalf("%q in %q: next(%d) = %d, but after %d it was %d", spec, zone, n-1, m, at, n)
		}
		if s := Describe(&engine.Schedule{Cron: spec, TimeZone: zone}); s == "" || strings.HasPrefix(s, "Never") {
			t.Fatalf("%q is described as %q", spec, s)
		}
		if took := time.Since(start); took > 100*hangs { // a fuzzer keeps the machine busy
			t.Fatalf("%q in %q took %v", spec, zone, took)
		}
	})
}

package plan

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"xtimer/engine"
)

// The oracle shares nothing with the calendar but the zone database: it steps
// through a window second by second or minute by minute, looks at the clock on
// the wall, and keeps the highest reading so far. A fixed hour is due when the
// highest reading passes a matching one; a wildcard hour, when the reading
// matches.
type oracle struct {
	fields [6][60]bool
	domAny bool
	dowAny bool
	fixed  bool
}

func newOracle(spec string) *oracle {
	o := &oracle{}
	texts := strings.Fields(spec)
	if len(texts) == 5 {
		texts = append([]string{"0"}, texts...)
	}
	lo, hi := [6]int{0, 0, 0, 1, 1, 0}, [6]int{59, 59, 23, 31, 12, 6}
	for i, text := range texts {
		for name, n := range map[string]int{"MON": 1, "FRI": 5, "SUN": 0, "SAT": 6, "JAN": 1, "MAR": 3, "OCT": 10} {
			text = strings.ReplaceAll(text, name, strconv.Itoa(n))
		}
		set := &o.fields[i]
		for item := range strings.SplitSeq(text, ",") {
			var a, b, step int
			switch {
			case item == "*":
				a, b, step = lo[i], hi[i], 1
			case scan(item, "*/%d", &step):
				a, b = lo[i], hi[i]
			case scan(item, "%d-%d/%d", &a, &b, &step):
			case scan(item, "%d/%d", &a, &step):
				b = hi[i]
			case scan(item, "%d-%d", &a, &b):
				step = 1
			case scan(item, "%d", &a):
				b, step = a, 1
			default:
				panic(item)
			}
			for ; a <= b; a += step {
				if i == 5 {
					set[a%7] = true
				} else {
					set[a] = true
				}
			}
		}
	}
	o.domAny, o.dowAny = texts[3] == "*", texts[5] == "*"
	o.fixed = texts[2][0] != '*' && slices.Contains(o.fields[2][:24], false)
	return o
}

// scan is Sscanf for the whole of s.
func scan(s, format string, args ...any) bool {
	n, err := fmt.Sscanf(s+"!", format+"!", args...)
	return err == nil && n == len(args)
}

func (o *oracle) matches(r *reading) bool {
	if !o.fields[0][r.second] || !o.fields[1][r.minute] || !o.fields[2][r.hour] || !o.fields[4][r.month] {
		return false
	}
	dom, dow := o.fields[3][r.day], o.fields[5][r.weekday]
	if !o.domAny && !o.dowAny {
		return dom || dow
	}
	return dom && dow
}

// reading is what a clock on the wall shows.
type reading struct {
	at                                        int64 // the second, as if it were UTC's
	second, minute, hour, day, month, weekday int
}

func readingOf(at int64) reading {
	w := time.Unix(at, 0).UTC()
	return reading{at, w.Second(), w.Minute(), w.Hour(), w.Day(), int(w.Month()), int(w.Weekday())}
}

// wall is what a clock shows at u.
func wall(u time.Time, loc *time.Location) reading {
	l := u.In(loc)
	_, offset := l.Zone()
	return readingOf(l.Unix() + int64(offset))
}

// dues finds the dues in (from, to]; walls has the readings from two days
// before from on, one a step.
func (o *oracle) dues(from time.Time, step time.Duration, walls []reading) []int64 {
	start := from.Add(-oracleLead)
	seconds := int64(step / time.Second)
	high := walls[0].at
	var dues []int64
	for i := range walls {
		w := &walls[i]
		due := !o.fixed && o.matches(w)
		for ; high < w.at; high += seconds {
			if !o.fixed {
				continue
			}
			next := w
			if high+seconds != w.at { // a reading that is skipped
				skipped := readingOf(high + seconds)
				next = &skipped
			}
			if o.matches(next) {
				due = true
			}
		}
		if !due {
			continue
		}
		if u := start.Add(time.Duration(i) * step); u.After(from) {
			dues = append(dues, u.UnixMilli())
		}
	}
	return dues
}

const oracleLead = 27 * time.Hour

func wallsOf(loc *time.Location, from, to time.Time, step time.Duration) []reading {
	ws := make([]reading, 0, (to.Sub(from)+oracleLead)/step+1)
	for u := from.Add(-oracleLead); !u.After(to); u = u.Add(step) {
		ws = append(ws, wall(u, loc))
	}
	return ws
}

var oracleZones = []string{
	"UTC", "America/New_York", "America/Sao_Paulo", "America/Santiago", "America/St_Johns", "America/Havana",
	"America/Nuuk", "Europe/London", "Europe/Berlin", "Europe/Dublin", "Africa/Casablanca", "Africa/Cairo",
	"Asia/Beirut", "Asia/Tehran", "Asia/Kolkata", "Asia/Shanghai", "Asia/Gaza", "Australia/Lord_Howe",
	"Australia/Sydney", "Pacific/Chatham", "Pacific/Apia", "Antarctica/Troll", "Asia/Kathmandu",
}

var oracleSpecs = []string{
	"* * * * *", "*/5 * * * *", "*/7 * * * *", "5,35 * * * *", "3/10 * * * *", "0 * * * *", "59 * * * *",
	"0 */2 * * *", "30 */3 * * *", "15 */6 * * 1-5", "0 0 * * *", "30 0 * * *", "59 23 * * *", "30 1 * * *",
	"0 1 * * *", "0 2 * * *", "30 2 * * *", "45 2 * * *", "*/10 2 * * *", "0 3 * * *", "30 3 * * *", "* 1 * * *",
	"* 2 * * *", "*/15 0-5 * * *", "0 9 * * MON-FRI", "0 9 * * 1-5", "0 9 * * 7", "0 0 * * 5-7", "30 2 * * SUN",
	"0 0 1 * *", "0 0 31 * *", "0 0 29 2 *", "30 2 8 3 *", "30 1 1 11 *", "0 0 13 * 5", "0 12 */2 * *",
	"0 12 * */3 *", "0 12 1-7 * 1", "0 0 1 1 *", "0 0,12 * * *", "0 23 * * *", "0 22-23 * * *", "0 0-23 * * *",
	"30 1-3 * * *", "0 1,2,3 * * *", "15/20 */4 * MAR-OCT *", "0 2 * 3,10 *", "0 2 25-31 3 SUN", "5 4 * JAN,MAR *",
	"*/30 1-23/2 * * *", "10-50/10 2 * * 0,6", "1 0 * * *",
}

// oracleWindows of three days are looked at in each zone. The race detector, which
// has nothing to find here, takes fewer: race_test.go.
var oracleWindows = 7

// TestCalendarOracle is equality with the oracle, from 2020 to 2037: around
// changes of the clock, and anywhere.
func TestCalendarOracle(t *testing.T) {
	for _, name := range oracleZones {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkZone(t, name, oracleWindows)
		})
	}
}

func checkZone(t *testing.T, name string, windows int) {
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Skip(err)
	}
	r := rand.New(rand.NewPCG(20, uint64(len(name))<<8+uint64(name[len(name)-1])))
	for _, from := range windowsOf(loc, r, windows) {
		to := from.Add(72 * time.Hour)
		walls := wallsOf(loc, from, to, time.Minute)
		for _, spec := range oracleSpecs {
			checkSpec(t, spec, name, from, to, newOracle(spec).dues(from, time.Minute, walls))
		}
	}
	// Seconds, through a change of the clock.
	from := windowsOf(loc, r, 1)[0].Add(34 * time.Hour)
	to := from.Add(4 * time.Hour)
	walls := wallsOf(loc, from, to, time.Second)
	for _, spec := range []string{"30 * * * * *", "0 3/10 * * * *", "*/7 */20 * * * *", "* * 2 * * *", "15,45 59 1 * * *", "1 0 3 * * *"} {
		checkSpec(t, spec, name, from, to, newOracle(spec).dues(from, time.Second, walls))
	}
}

// windowsOf picks starts of windows: a day and a half before changes of the
// clock, if there are any, and elsewhere.
func windowsOf(loc *time.Location, r *rand.Rand, n int) []time.Time {
	lo := time.Date(2020, 1, 3, 0, 0, 0, 0, time.UTC)
	var changes []time.Time
	for u := lo; u.Year() < 2038; {
		_, end := u.In(loc).ZoneBounds()
		if end.IsZero() {
			break
		}
		changes = append(changes, end.UTC().Truncate(time.Minute).Add(-36*time.Hour))
		if !end.After(u) { // as the library has it on the last day of a leap year
			end = u.Add(24 * time.Hour)
		}
		u = end
	}
	var starts []time.Time
	for i := range n {
		if i%4 != 3 && len(changes) > 0 {
			starts = append(starts, changes[r.IntN(len(changes))])
			continue
		}
		starts = append(starts, lo.Add(time.Duration(r.IntN(18*365*24*60))*time.Minute))
	}
	return starts
}

func checkSpec(t *testing.T, spec, zone string, from, to time.Time, want []int64) {
	t.Helper()
	c, err := calendarOf(spec, zone)
	if err != nil {
		t.Fatalf("%q: %v", spec, err)
	}
	var got []int64
	for at := from.UnixMilli(); ; {
		if at = c.compute(at); at > to.UnixMilli() {
			break
		}
		got = append(got, at)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%q in %s from %v:\n got %s\nwant %s", spec, zone, from, stamps(got), stamps(want))
	}
	last, count, _ := c.walk(from.UnixMilli(), to.UnixMilli(), 1<<60, 1<<30)
	if int(count) != len(want) || count > 0 && last != want[len(want)-1] {
		t.Fatalf("%q in %s from %v: walk found %d up to %s, there are %d", spec, zone, from, count, engine.FormatInstant(last), len(want))
	}
	if n := c.count(from.UnixMilli(), to.UnixMilli()); int(n) != len(want) {
		t.Fatalf("%q in %s from %v: counted %d, there are %d", spec, zone, from, n, len(want))
	}
	for i := 0; i < len(want); i += 1 + len(want)/20 { // from and to any of them, and between
		for _, off := range []int64{0, 1, -1, 1000, 40_000} {
			at := min(want[i]+off, to.UnixMilli())
			if n := c.count(from.UnixMilli(), at); n != below(want, at) {
				t.Fatalf("%q in %s from %v: counted %d up to %s", spec, zone, from, n, engine.FormatInstant(at))
			}
			if n := c.count(at, to.UnixMilli()); n != int64(len(want))-below(want, at) {
				t.Fatalf("%q in %s to %v: counted %d from %s on", spec, zone, to, n, engine.FormatInstant(at))
			}
		}
	}
	for i, d := range want { // the last one before any instant
		if i > 40 {
			break
		}
		if p := c.prev(d+999, earliest); p != d && (i+1 == len(want) || p != want[i+1]) {
			t.Fatalf("%q in %s: prev(%s + 999 ms) = %s", spec, zone, engine.FormatInstant(d), engine.FormatInstant(p))
		}
		if m := c.around(d); m.prev != d || m.next != c.compute(d) || m.after != c.compute(m.next) {
			t.Fatalf("%q in %s: around(%s) = %+v", spec, zone, engine.FormatInstant(d), m)
		}
	}
}

// below is how many of the instants are not later than at.
func below(ms []int64, at int64) int64 {
	n, _ := slices.BinarySearch(ms, at+1)
	return int64(n)
}

// Years are counted as they are walked, through all changes of the clock in them.
func TestCalendarCountsYears(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, zone := range oracleZones {
		for range 6 {
			spec := oracleSpecs[r.IntN(len(oracleSpecs))]
			c, err := calendarOf(spec, zone)
			if err != nil {
				t.Fatal(err)
			}
			from := time.Date(1992+r.IntN(70), 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() + r.Int64N(365*86_400_000)
			to := from + r.Int64N(3*365*86_400_000)
			if _, want, _ := c.walk(from, to, 1<<60, 1<<30); c.count(from, to) != want {
				t.Errorf("%q in %s from %s to %s: counted %d, there are %d", spec, zone, engine.FormatInstant(from), engine.FormatInstant(to), c.count(from, to), want)
			}
		}
	}
}

func stamps(ms []int64) string {
	var b strings.Builder
	for _, m := range ms[:min(len(ms), 12)] {
		b.WriteString(engine.FormatInstant(m) + " ")
	}
	return b.String() + fmt.Sprint("(", len(ms), ")")
}

// The rule for changes of the clock, by name, so that it stands somewhere in
// plain instants.
func TestCalendarClockChanges(t *testing.T) {
	for _, c := range []struct{ spec, zone, from, want string }{
		{"30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", "2026-03-08T07:00:00Z 2026-03-09T06:30:00Z"},
		{"*/10 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", "2026-03-08T07:00:00Z 2026-03-09T06:00:00Z"},
		{"*/30 2-3 * * *", "America/New_York", "2026-03-07T12:00:00Z", "2026-03-08T07:00:00Z 2026-03-08T07:30:00Z 2026-03-09T06:00:00Z"},
		{"30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", "2026-11-01T05:30:00Z 2026-11-02T06:30:00Z"},
		{"30 1 * * *", "America/New_York", "2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"},
		{"30 1 * * *", "America/New_York", "2026-11-01T06:10:00Z", "2026-11-02T06:30:00Z"},
		{"30 * * * *", "America/New_York", "2026-11-01T05:00:00Z", "2026-11-01T05:30:00Z 2026-11-01T06:30:00Z 2026-11-01T07:30:00Z"},
		{"30 */1 * * *", "America/New_York", "2026-03-08T06:00:00Z", "2026-03-08T06:30:00Z 2026-03-08T07:30:00Z"},
		{"0 0 * * *", "Asia/Beirut", "2026-03-28T12:00:00Z", "2026-03-28T22:00:00Z 2026-03-29T21:00:00Z"},
		{"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", "2026-10-03T15:30:00Z 2026-10-04T15:15:00Z"},
		{"45 1 * * *", "Australia/Lord_Howe", "2026-04-03T20:00:00Z", "2026-04-04T14:45:00Z 2026-04-05T15:15:00Z"},
		// Days that a zone skipped: robfig's own Next never returns here.
		{"0 9 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", "2011-12-29T19:00:00Z 2011-12-30T10:00:00Z 2011-12-30T19:00:00Z"},
		{"0 9 31 12 *", "Pacific/Apia", "2011-12-01T00:00:00Z", "2011-12-30T19:00:00Z 2012-12-30T19:00:00Z"},
		{"0 0 21 8 *", "Pacific/Kwajalein", "1993-08-01T00:00:00Z", "1993-08-21T12:00:00Z"},
		// Where zones follow rules, not tables, the library ends leap years a day early.
		{"0 12 * * *", "America/New_York", "2044-12-30T12:00:00Z", "2044-12-30T17:00:00Z 2044-12-31T17:00:00Z 2045-01-01T17:00:00Z"},
		{"30 */12 * * *", "Australia/Sydney", "2044-12-30T20:00:00Z", "2044-12-31T01:30:00Z 2044-12-31T13:30:00Z 2045-01-01T01:30:00Z"},
		{"0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"0 0 29 2 *", "America/New_York", "2096-03-01T00:00:00Z", "2104-02-29T05:00:00Z"},
		{"* * 29 2 *", "America/New_York", "2096-03-01T05:00:00Z", "2104-02-29T05:00:00Z 2104-02-29T05:01:00Z"},
	} {
		cal, err := calendarOf(c.spec, c.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, _ := time.Parse(time.RFC3339, c.from)
		for want := range strings.FieldsSeq(c.want) {
			at = time.UnixMilli(cal.compute(at.UnixMilli()))
			if got := at.UTC().Format(time.RFC3339); got != want {
				t.Errorf("%q in %s after %s: %s, want %s", c.spec, c.zone, c.from, got, want)
			}
		}
	}
}

// What was remembered must be what is computed, whoever asks in which order.
func TestCalendarMemo(t *testing.T) {
	c, err := calendarOf("*/10 1-3 * * *", "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	base := time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC).UnixMilli()
	for range 20_000 {
		at := base + r.Int64N(40)*150_000 - r.Int64N(2)
		if r.IntN(2) == 0 {
			if got, want := c.next(at), c.compute(at); got != want {
				t.Fatalf("next(%d) = %d, want %d", at, got, want)
			}
			continue
		}
		m, next := c.around(at), c.compute(at)
		if m.prev != c.prev(at, 0) || m.next != next || m.after != c.compute(next) {
			t.Fatalf("around(%d) = %+v", at, m)
		}
	}
}

// Specs that nobody uses any more must not stay: a stranger may try millions.
func TestCalendarsAreForgotten(t *testing.T) {
	size := func() int {
		calendars.RLock()
		defer calendars.RUnlock()
		return len(calendars.m)
	}
	keep, err := calendarOf("1 2 3 4 5", "UTC")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 {
		if _, err := calendarOf(fmt.Sprintf("%d %d %d * *", i%60, i/60%24, 1+i/1440), "UTC"); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		runtime.GC()
		if size() < 5000 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := size(); n >= 5000 {
		t.Errorf("%d calendars stay", n)
	}
	if c, _ := calendarOf("1 2 3 4 5", "UTC"); c != keep {
		t.Error("a calendar in use was made twice")
	}
	runtime.KeepAlive(keep)
}

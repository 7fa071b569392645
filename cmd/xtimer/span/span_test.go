package span

import (
	"strings"
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	f := func(s string, want time.Duration, back string) {
		t.Helper()
		d, err := Parse(s)
		if want == 0 {
			if err == nil {
				t.Errorf("parseSpan(%q) = %v, want an error", s, d)
			}
			return
		}
		if err != nil || d != want || Format(d) != back {
			t.Errorf("parseSpan(%q) = %v (%s), %v; want %v (%s)", s, d, Format(d), err, want, back)
		}
	}
	f("7d", 7*day, "7d")
	f("1d12h", 36*time.Hour, "36h")
	f("90m", 90*time.Minute, "1h30m")
	f("30s", 30*time.Second, "30s")
	f("1h0m30s", time.Hour+30*time.Second, "1h0m30s")
	f("250ms", 250*time.Millisecond, "250ms")
	f("10m", 10*time.Minute, "10m")
	f("106751d", 106751*day, "106751d")
	for _, bad := range []string{"", "d", "7", "-1d", "1d-2h", "1.5d", "d1h", "7days", "199999d", "106751d24h", "10000000h", "1d2d"} {
		f(bad, 0, "")
	}
	for s, want := range map[string]string{"10000000h": "out of range: a duration is at most 106751d", "106751d24h": "out of range", "199999d": "out of range", "1.5d": "not a duration", "7": "not a duration"} {
		if _, err := Parse(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parseSpan(%q): %v, want %s", s, err, want)
		}
	}
}

// TestMomentInSeconds: a Unix time in seconds does not pass for one of 1970.
func TestMomentInSeconds(t *testing.T) {
	now := time.UnixMilli(1763658000250)
	if _, err := Moment("1763658000", now); err == nil || !strings.Contains(err.Error(), "did you mean seconds? Then write 1763658000000") {
		t.Error(err)
	}
	if ms, err := Moment("1763658000000", now); err != nil || ms != 1763658000000 {
		t.Error(ms, err)
	}
}

func TestAway(t *testing.T) {
	f := func(d time.Duration, want string) {
		t.Helper()
		if got := Away(d); got != want {
			t.Errorf("away(%v) = %q, want %q", d, got, want)
		}
	}
	f(500*time.Millisecond, "in 0s")
	f(59*time.Second, "in 59s")
	f(61*time.Second, "in 1m 1s")
	f(25*time.Hour+5*time.Minute, "in 1d 1h")
}

// FuzzSpan: a duration with days is written as one that is read as the same.
func FuzzSpan(f *testing.F) {
	for _, s := range []string{"7d", "1d12h", "106751d", "106751d23h47m16.854775807s", "106752d", "-1d", "1d-1h", "0d", "d", "90m", "9999999999d", "+1d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := Parse(s)
		if err != nil {
			return
		}
		if again, err := Parse(Format(d)); err != nil || again != d {
			t.Fatalf("%q is %v, written %s and read again as %v, %v", s, d, Format(d), again, err)
		}
	})
}

package wire

import (
	"strconv"
	"testing"
)

// A time is RFC 3339 and nothing that time.Parse takes besides.
func TestParseTimeIsStrict(t *testing.T) {
	for s, want := range map[string]bool{
		"2026-11-20T07:00:00Z": true, "2026-11-20T07:00:00.25Z": true, "2026-11-20T07:00:00.250+08:00": true, "2026-11-20T07:00:00-00:30": true,
		"2026-11-20T7:00:00Z": false, "2026-11-20T07:00:00,250Z": false, "2026-11-20T07:00:00+24:00": false, "2026-11-20T07:00:00+00:60": false,
		"2026-11-20 07:00:00Z": false, "2026-11-20T07:00Z": false, "2026-11-20T24:00:00Z": false, "2026-02-29T07:00:00Z": false, "": false,
	} {
		if _, _, ok := ParseTime(s); ok != want {
			t.Errorf("%q is a time: %t", s, ok)
		}
	}
}

func TestInteger(t *testing.T) {
	for s, want := range map[string]string{
		"100": "100", "100.0": "100", "1e3": "1000", "-2.50e1": "-25", "1.5": "no", "1e-3": "no", "0.0": "0", "9007199254740993": "9007199254740993",
		"1e300": "range", "1e999999999": "range", "9223372036854775808": "range",
	} {
		got := "no"
		if n, whole, err := integer([]byte(s)); err != nil && whole {
			got = "range"
		} else if whole {
			got = strconv.FormatInt(n, 10)
		}
		if got != want {
			t.Errorf("%s is read as %s, want %s", s, got, want)
		}
	}
}

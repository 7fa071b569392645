package plan

import (
	"errors"
	"fmt"
	"strings"
)

// MatchSuccess reports whether an answer's status code is one of a callback's
// success codes: codes, ranges and classes, like "200,202,300-399" or "2xx". It
// is on the hot path and allocates nothing; a spec that Validate refuses
// matches nothing.
func MatchSuccess(spec string, code int) bool {
	if len(spec) == 3 && spec[1] == 'x' && spec[2] == 'x' {
		return code/100 == int(spec[0]-'0')
	}
	for spec != "" {
		item, rest, _ := strings.Cut(spec, ",")
		if lo, hi, ok := codeRange(item); ok && lo <= code && code <= hi {
			return true
		}
		spec = rest
	}
	return false
}

const maxSuccess = 256 // bytes

func checkSuccess(spec string) error {
	if len(spec) > maxSuccess {
		return fmt.Errorf("has %d bytes; at most %d are allowed", len(spec), maxSuccess)
	}
	if spec == "" {
		return errors.New(`is empty; write codes, ranges and classes from 100 to 599, like "200,202,300-399" or "2xx"`)
	}
	for item := range strings.SplitSeq(spec, ",") {
		if _, _, ok := codeRange(item); !ok {
			return fmt.Errorf(`%q is not a code, range or class from 100 to 599, like "200,202,300-399" or "2xx"`, item)
		}
	}
	return nil
}

// codeRange reads one item: 200, 300-399 or 2xx.
func codeRange(s string) (lo, hi int, ok bool) {
	switch {
	case len(s) == 3 && s[1] == 'x' && s[2] == 'x':
		lo = int(s[0]-'0') * 100
		hi = lo + 99
	case len(s) == 3:
		lo = code3(s)
		hi = lo
	case len(s) == 7 && s[3] == '-':
		lo, hi = code3(s[:3]), code3(s[4:])
	}
	return lo, hi, 100 <= lo && lo <= hi && hi <= 599
}

func code3(s string) int {
	n := 0
	for i := range 3 {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}

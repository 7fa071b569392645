package main

import (
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// settable is a setting's value, as the command line, the environment and the
// file set it.
type settable interface {
	String() string
	Set(string) error
	Type() string
}

type (
	textValue  string
	boolValue  bool
	spanValue  time.Duration
	cidrsValue []netip.Prefix
	// secretValue is text that is printed only as being set.
	secretValue string
	listValue   []string
	countValue  int
)

func (v *textValue) String() string     { return string(*v) }
func (v *textValue) Set(s string) error { *v = textValue(s); return nil }
func (v *textValue) Type() string       { return "string" }

func (v *boolValue) String() string { return strconv.FormatBool(bool(*v)) }
func (v *boolValue) Type() string   { return "bool" }

func (v *boolValue) Set(s string) error {
	b, err := strconv.ParseBool(s)
	if err != nil {
		return fmt.Errorf("%q is neither true nor false", s)
	}
	*v = boolValue(b)
	return nil
}

func (v *spanValue) String() string { return formatSpan(time.Duration(*v)) }
func (v *spanValue) Type() string   { return "duration" }

func (v *spanValue) Set(s string) error {
	d, err := parseSpan(s)
	if err == nil {
		*v = spanValue(d)
	}
	return err
}

func (v *secretValue) Set(s string) error { *v = secretValue(s); return nil }
func (v *secretValue) Type() string       { return "string" }

func (v *secretValue) String() string {
	if *v == "" {
		return ""
	}
	return "(hidden)"
}

func (v *listValue) Type() string { return "list" }

// String shows addresses, without the passwords of those that are URLs. Where a
// password may not be where its URL says, all is hidden: a comma in it makes items
// of its pieces.
func (v *listValue) String() string {
	all := strings.Join(*v, ",")
	if !strings.Contains(all, "://") && !strings.Contains(all, "@") {
		return all
	}
	s := make([]string, len(*v))
	for i, one := range *v {
		var ok bool
		if s[i], ok = withoutPassword(one); !ok {
			return "(hidden)"
		}
	}
	return strings.Join(s, ",")
}

// withoutPassword is an address as people may see it; ok is false when a part of it
// may be a piece of a password, as after one of /?# that was not escaped.
func withoutPassword(addr string) (shown string, ok bool) {
	_, rest, isURL := strings.Cut(addr, "://")
	if !isURL {
		_, _, err := net.SplitHostPort(addr)
		return addr, err == nil && !strings.Contains(addr, "@")
	}
	u, err := url.Parse(addr)
	if err != nil {
		return "", false
	}
	q, err := url.ParseQuery(u.RawQuery)
	if i := strings.IndexAny(rest, "/?#"); err != nil || i >= 0 && strings.ContainsAny(rest[i:], "@#") {
		return "", false
	}
	for k := range q {
		if strings.HasSuffix(strings.ToLower(k), "password") {
			q.Set(k, "xxxxx")
			u.RawQuery = q.Encode()
		}
	}
	return u.Redacted(), true
}

// Set adds to what is there: a flag may be given more than once.
func (v *listValue) Set(s string) error {
	for one := range strings.SplitSeq(s, ",") {
		if one = strings.TrimSpace(one); one != "" {
			*v = append(*v, one)
		}
	}
	return nil
}

func (v *countValue) String() string { return strconv.Itoa(int(*v)) }
func (v *countValue) Type() string   { return "number" }

func (v *countValue) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("%q is not a whole number", s)
	}
	*v = countValue(n)
	return nil
}

func (v *cidrsValue) Type() string { return "CIDRs" }

func (v *cidrsValue) String() string {
	s := make([]string, len(*v))
	for i, p := range *v {
		s[i] = p.String()
	}
	return strings.Join(s, ",")
}

// Set adds to what is there: a flag may be given more than once.
func (v *cidrsValue) Set(s string) error {
	for one := range strings.SplitSeq(s, ",") {
		p, err := parsePrefix(strings.TrimSpace(one))
		if err != nil {
			return err
		}
		*v = append(*v, p)
	}
	return nil
}

// parsePrefix reads 10.0.0.0/8, and 10.1.2.3 as the network of one address.
func parsePrefix(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, fmt.Errorf("%q is not a network such as 10.0.0.0/8", s)
	}
	if p != p.Masked() {
		return p, fmt.Errorf("%q has bits set beyond its length: did you mean %s?", s, p.Masked())
	}
	return p, nil
}

const day = 24 * time.Hour

// parseSpan reads a Go duration that may begin with days: 7d, 1d12h, 90m.
func parseSpan(s string) (time.Duration, error) {
	d, ok := spanOf(s)
	if ok {
		return d, nil
	}
	// With one digit a number each is small enough: then only the form counts.
	if _, ok := spanOf(numbers.ReplaceAllString(s, "1")); ok {
		return 0, fmt.Errorf("%q is out of range: a duration is at most %dd, which is 292 years", s, maxDays)
	}
	return 0, fmt.Errorf("%q is not a duration such as 250ms, 30m or 7d", s)
}

var numbers = regexp.MustCompile("[0-9]+")

const maxDays = uint64(math.MaxInt64 / day)

func spanOf(s string) (d time.Duration, ok bool) {
	head, rest, days := strings.Cut(s, "d")
	if !days {
		head, rest = "", s
	}
	if days {
		n, err := strconv.ParseUint(head, 10, 64)
		if err != nil || n > maxDays {
			return 0, false
		}
		d = time.Duration(n) * day
	}
	if rest != "" {
		r, err := time.ParseDuration(rest)
		if err != nil || days && r < 0 || d+r < d && days {
			return 0, false
		}
		d += r
	}
	return d, s != ""
}

// formatSpan writes whole days as such, all else as Go does without empty units.
func formatSpan(d time.Duration) string {
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

package settings

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
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
	cidrsValue []netip.Prefix
	// Secret is text that is printed only as being set.
	Secret     string
	listValue  []string
	countValue int
)

func (v *textValue) String() string     { return string(*v) }
func (v *textValue) Set(s string) error { *v = textValue(s); return nil }
func (v *textValue) Type() string       { return "string" }

func (v *boolValue) String() string { return strconv.FormatBool(bool(*v)) }
func (v *boolValue) Type() string   { return "bool" }

func (v *boolValue) Set(s string) error {
	b, err := strconv.ParseBool(s)
	if err != nil {
		return fmt.Errorf("%q is not true or false", s)
	}
	*v = boolValue(b)
	return nil
}

func (v *Secret) Set(s string) error { *v = Secret(s); return nil }
func (v *Secret) Type() string       { return "string" }

func (v *Secret) String() string {
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

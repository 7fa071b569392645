package redis

import (
	"strings"
	"testing"
)

// FuzzAddress: addresses are refused, or are host:port each; no password is in
// an error.
func FuzzAddress(f *testing.F) {
	for _, rest := range []string{"h:1/3", "h?skip_verify=true", "h:port/", "h/db", "h%zz", "@h", "h,h:1", "[::1", ""} {
		f.Add("127.0.0.1:6379", "secret", rest)
	}
	f.Add("a:1,b:2,redis://c", "sec%zzret", "h")
	f.Fuzz(func(t *testing.T, plain, password, rest string) {
		if c := (Config{Addrs: strings.Split(plain, ",")}); len(c.Addrs) > 1 {
			if o, err := c.options(); err == nil && strings.Contains(strings.Join(o.Addrs, ","), "://") {
				t.Fatalf("%q are dialled", o.Addrs)
			}
		}
		if len(password) < 6 || strings.ContainsAny(password, "/?#") || strings.Contains(rest, password) {
			return
		}
		for _, scheme := range []string{"redis", "rediss", "unix"} {
			c := Config{Addrs: []string{scheme + "://user:" + password + "@" + rest}}
			if _, err := c.options(); err != nil && strings.Contains(err.Error(), password) {
				t.Fatalf("the password is told: %v", err)
			}
		}
	})
}

package redis

import (
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"xtimer/engine"
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

// FuzzMembers: of a bucket whose members and scores are what anybody wrote, each
// is an entry, and what was stored reads as it was; the weight of a bucket tells
// when a member or a due is another.
func FuzzMembers(f *testing.F) {
	f.Add(uint64(7), int64(1795000000000), member(8), 1795000000001.0)
	f.Add(uint64(7), int64(1795000000000), member(7), 1795000000001.0)
	f.Add(uint64(1<<63-1), engine.MaxDue, "", -1.5)
	f.Add(uint64(1), int64(1), "seven b", 1e300)
	f.Add(uint64(1), int64(1), "more than eight bytes", 0.0)
	f.Fuzz(func(t *testing.T, id uint64, due int64, other string, score float64) {
		due = min(max(due, 0), engine.MaxDue)
		own := goredis.Z{Member: member(engine.TimerID(id)), Score: float64(due)}
		one, part1 := appendEntries(nil, []goredis.Z{own})
		if len(one) != 1 || one[0].ID != engine.TimerID(id) || one[0].Due != due {
			t.Fatalf("%d at %d reads as %+v", id, due, one)
		}
		strange := goredis.Z{Member: other, Score: score}
		two, part2 := appendEntries(nil, []goredis.Z{own, strange})
		_, swapped := appendEntries(nil, []goredis.Z{strange, own})
		if len(two) != 2 || part2.count != 2 || part2 != swapped || part2.sum < 0 || part2.sum > sumMask {
			t.Fatalf("%+v, %+v, in another order %+v", two, part2, swapped)
		}
		_, alone := appendEntries(nil, []goredis.Z{strange})
		if same := other == own.Member.(string) && int64(score) == due; (alone == part1) != same {
			t.Fatalf("%q at %v weighs as much as %d at %d", other, score, id, due)
		}
	})
}

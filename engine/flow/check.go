package flow

import (
	"fmt"
	"time"
)

// Wrong is what is wrong with a field of a limit.
type Wrong struct{ Field, Code, Detail string }

// Check returns what is wrong with a limit, with its defaults filled in.
func (l *Limit) Check() (wrong []Wrong) {
	between := func(ok bool, field string, low, high any) {
		if !ok {
			wrong = append(wrong, Wrong{field, "out_of_range", fmt.Sprintf("is not in the range %v to %v", low, high)})
		}
	}
	if l.Rate != 0 {
		between(l.Rate >= 1 && l.Rate <= 1_000_000, "rate", 1, 1_000_000)
		between(l.Per >= time.Second && l.Per <= 24*time.Hour, "per", "1s", "24h")
		between(l.Burst >= 1, "burst", 1, "rate")
		if l.Burst > l.Rate {
			wrong = append(wrong, Wrong{"burst", "burst_over_rate", "is greater than rate"})
		}
	} else if l.Burst > 1 || l.Per != 0 {
		wrong = append(wrong, Wrong{"rate", "out_of_range", "is required with per and burst"})
	}
	between(l.Concurrency >= 0 && l.Concurrency <= 10_000, "concurrency", 1, 10_000)
	if b := &l.Breaker; b.Of != 0 {
		between(b.Share > 0 && b.Share <= 1, "breaker.share", 0, 1)
		between(b.Of >= 1 && b.Of <= 1000, "breaker.of", 1, 1000)
		between(b.Within >= time.Second && b.Within <= time.Hour, "breaker.within", "1s", "1h")
		between(b.Open >= time.Second && b.Open <= time.Hour, "breaker.open", "1s", "1h")
		between(b.MaxOpen >= b.Open && b.MaxOpen <= 24*time.Hour, "breaker.max_open", "open", "24h")
	}
	if l.Rate == 0 && l.Concurrency == 0 && !l.Cooldown && l.Breaker.Of == 0 && len(wrong) == 0 {
		wrong = append(wrong, Wrong{"", "nothing_limited", "the limit has none of rate, concurrency, cooldown and breaker"})
	}
	return wrong
}

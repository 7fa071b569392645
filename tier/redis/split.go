package redis

import goredis "github.com/redis/go-redis/v9"

// splitting gives a minute of a shard one more bucket.
type splitting struct {
	w      *Warm
	sh     *shard
	minute int64
	from   int
}

func (s *splitting) build() (script *goredis.Script, keys []string, args []any, ok bool) {
	b := s.sh.buckets[s.minute]
	if b == nil || !b.isFull() {
		return nil, nil, nil, false
	}
	to := len(b.parts)
	modulus := roundUp(to + 1)
	s.from = to - modulus/2
	return splitScript,
		[]string{s.sh.bucketKey(s.minute, s.from), s.sh.bucketKey(s.minute, to)},
		[]any{bucketField(s.minute, s.from), bucketField(s.minute, to), secondsLeft((s.minute + 1) * minuteMs), modulus, to},
		true
}

func (s *splitting) adopt(reply []any) {
	b := s.sh.buckets[s.minute]
	b.parts[s.from] = part{reply[0].(int64), reply[1].(int64)}
	b.parts = append(b.parts, part{reply[2].(int64), reply[3].(int64)})
}

func (s *splitting) fail(sent bool) {
	if sent {
		s.w.loseMinute(s.sh, s.minute)
	}
}

package bench

import (
	"errors"
	"fmt"
	"time"
)

// benchShape is how many timers there are, and when each is due.
type benchShape struct {
	rate   int
	length time.Duration
	burst  int // 0: rate and length hold
	spread time.Duration
	lead   time.Duration // 0: as leadTime says
}

// maxTimers of one run: what the receiver keeps of each is 9 bytes, and its
// lateness is sorted at the end.
const maxTimers = 50_000_000

// check says what is wrong with the shape, and how many timers it has.
func (s *benchShape) check() (n int, err error) {
	if s.burst < 0 || s.spread < 0 || s.lead < 0 {
		return 0, errors.New("--burst, --spread and --lead must not be negative")
	}
	if s.burst == 0 && (s.rate < 1 || s.length <= 0) {
		return 0, errors.New("--rate and --for must be more than 0")
	}
	if s.spread > 0 && s.burst == 0 {
		return 0, errors.New("--spread needs --burst; with --rate the timers are spread anyway")
	}
	if n = s.burst; n == 0 {
		f := float64(s.rate) * s.length.Seconds()
		n = int(min(f, maxTimers+1))
	}
	if n < 1 || n > maxTimers {
		return 0, fmt.Errorf("the load has %d timers; it must have 1 to %d", n, maxTimers)
	}
	return n, nil
}

// duration is from the first due to the last.
func (s *benchShape) duration() time.Duration {
	if s.burst > 0 {
		return s.spread
	}
	return s.length
}

// due of timer i, in whole ms as the API has it. It grows with i.
func (s *benchShape) due(start time.Time, i int) time.Time {
	n := s.burst
	if n == 0 {
		return start.Add(time.Duration(float64(i) / float64(s.rate) * 1e9).Truncate(time.Millisecond))
	}
	return start.Add(time.Duration(float64(s.spread) * float64(i) / float64(n)).Truncate(time.Millisecond))
}

// leadTime is how long before its due a timer is made.
func (s *benchShape) leadTime() time.Duration {
	if s.lead > 0 {
		return s.lead
	}
	return 3*time.Second + time.Duration(s.burst)*50*time.Microsecond
}

// batch is how many timers one request makes: with a rate the tenth part of a
// second, so that load comes as evenly as it is due.
func (s *benchShape) batch(payload int) int {
	n := 1000 // the most that the API takes
	if s.burst == 0 {
		n = min(n, max(1, s.rate/10))
	}
	return max(1, min(n, maxBatchBytes/(payload+512)))
}

func (s *benchShape) String() string {
	switch {
	case s.burst > 0 && s.spread > 0:
		return fmt.Sprintf("%d timers due over %v", s.burst, s.spread)
	case s.burst > 0:
		return fmt.Sprintf("%d timers due at one instant", s.burst)
	}
	return fmt.Sprintf("%d timers due a second, for %v", s.rate, s.length)
}

package httpapi

import (
	"context"
	"sync"
	"time"

	"xtimer/engine"
	"xtimer/engine/scheduler"
)

// trend remembers how each of the last minutes went, up to a day of them, for
// GET /v1/stats/trend: 57 KiB. A restart forgets it; Prometheus does not.
type trend struct {
	mu     sync.Mutex
	points []trendPoint // oldest first
	last   [10]int64    // what had ended when the last point was taken
}

type trendPoint struct {
	at       int64 // its end, Unix ms
	minute   scheduler.Minute
	ended    int64
	failures int64 // failed, dead, missed or unknown
}

const trendLength = 24 * 60

// run takes a point each minute until ctx ends.
func (t *trend) run(ctx context.Context, e *scheduler.Scheduler) {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			t.take(e)
		}
	}
}

func (t *trend) take(e *scheduler.Scheduler) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.now(e)
	if len(t.points) == trendLength {
		t.points = append(t.points[:0], t.points[1:]...)
	}
	t.points, t.last = append(t.points, p), p.minute.Ended
}

// now is the minute that has not ended yet. mu is held.
func (t *trend) now(e *scheduler.Scheduler) (p trendPoint) {
	p.at, _ = e.Now()
	p.minute = e.LastMinute()
	for st := engine.Succeeded; st <= engine.Unknown; st++ {
		n := p.minute.Ended[st] - t.last[st]
		p.ended += n
		switch st {
		case engine.Failed, engine.Dead, engine.Missed, engine.Unknown:
			p.failures += n
		}
	}
	return p
}

// getTrend is GET /v1/stats/trend: the last minutes, the present one last.
func (s *Server) getTrend(r *request) (reply, error) {
	n, err := r.number("minutes", 180, 1, trendLength)
	if err != nil {
		return reply{}, err
	}
	t := &s.trend
	t.mu.Lock()
	defer t.mu.Unlock()
	points := append(t.points[max(0, len(t.points)-n+1):len(t.points):len(t.points)], t.now(s.e))
	now, steps := s.e.Now()
	return reply{body: renderFunc(func(b []byte) []byte {
		b = timeMember(append(b, '{'), "now", now)
		b = intMember(b, "clock_steps", int64(steps))
		b = append(member(b, "minutes"), '[')
		for i := range points {
			p := &points[i]
			b = timeMember(append(comma(b), '{'), "end", p.at)
			b = floatMember(b, "fires_per_second", p.minute.FiresPerSec)
			for i, name := range latenessNames {
				b = floatMember(b, name, p.minute.Lateness[i])
			}
			b = intMember(b, "ended", p.ended)
			b = append(intMember(b, "failures", p.failures), '}')
		}
		return append(b, ']', '}')
	})}, nil
}

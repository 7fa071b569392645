package bench

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// judge looks at all calls:
//
//   - none is missing or early; what is at_most_once does not come again (nodes.judge)
//   - what comes again is marked, and comes again in the window of a fault, no more often than
//     the fault allows
//   - outside such windows calls are at most 1 s late, within them 4 s more than the fault took (timed)
//   - the fences of a shard's calls do not go back
//   - no one-shot that was acknowledged is missing, none is called after its delete was answered
func (x *nemesis) judge() {
	x.t.Helper()
	x.owner.judge(x.t, x.lost)
	x.nodes.judge()
	x.mu.Lock()
	defer x.mu.Unlock()
	noted := 0
	for key, as := range x.arrivals {
		_, due, _ := strings.Cut(key, "_")
		ms, _ := strconv.ParseInt(due, 10, 64)
		at := time.UnixMilli(ms)
		s, allowed := x.at(at), time.Second
		if s != nil {
			allowed = s.healed.Sub(s.from) + 4*time.Second
			s.late = max(s.late, as[0].at.Sub(at))
		}
		if late := as[0].at.Sub(at); late > allowed && x.timed && noted < 20 {
			x.t.Errorf("%s was called %v late, by node %d", key, round(late), as[0].by)
			noted++
		}
		for _, a := range repeats(as) {
			if s := x.at(a.at); s != nil {
				s.came++
			} else {
				x.t.Errorf("%s came again when nothing had been done, %v after the call before", key, round(a.at.Sub(as[0].at)))
			}
		}
	}
	for _, s := range x.struck {
		x.t.Logf("%s %s: %d calls came again, at most %v late", s.from.Format("15:04:05"), s.names, s.came, round(s.late))
		if s.came > s.repeats && x.timed {
			x.t.Errorf("%s: %d calls came again, %d may", s.names, s.came, s.repeats)
		}
	}
	x.fences()
}

// at is the latest fault in whose window an instant lies, nil if there is none.
func (x *nemesis) at(t time.Time) *struck {
	for _, s := range slices.Backward(x.struck) {
		if t.After(s.from.Add(-time.Second)) && t.Before(s.healed.Add(healing)) {
			return s
		}
	}
	return nil
}

// lost reports whether what was committed at an instant was lost when MySQL went back.
func (x *nemesis) lost(t time.Time) bool {
	s := x.at(t)
	return s != nil && s.goesBack && t.Before(s.healed.Add(time.Second))
}

// fences wants the fences of each shard in order. A call whose first byte left before a
// takeover may arrive 250 ms later. A database that went back has issued numbers anew.
func (x *nemesis) fences() {
	type call struct {
		arrival
		fence int
	}
	shards := map[string][]call{}
	for _, as := range x.arrivals {
		for _, a := range as {
			shard, n, _ := strings.Cut(a.fence, ".")
			fence, err := strconv.Atoi(n)
			if err != nil {
				x.t.Errorf("a call of node %d has the fence %q", a.by, a.fence)
				return
			}
			shards[shard] = append(shards[shard], call{a, fence})
		}
	}
	for shard, cs := range shards {
		slices.SortFunc(cs, func(a, b call) int { return cmp.Or(a.at.Compare(b.at), a.fence-b.fence) })
		top := call{}
		for _, c := range cs {
			switch s := x.at(c.at); {
			case s != nil && s.goesBack:
				top = c
			case c.fence >= top.fence:
				if c.fence > top.fence {
					top = c
				}
			case c.at.Sub(top.at) > 250*time.Millisecond:
				x.t.Errorf("shard %s: node %d called with the fence %d, %v after node %d with %d", shard, c.by, c.fence, round(c.at.Sub(top.at)), top.by, top.fence)
			}
		}
	}
}

package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
)

// shelf is a cold tier that only verifying reads: lives, records and rows as
// the test puts them there.
type shelf struct {
	engine.Cold
	lives  []engine.Life
	tasks  []*engine.Task // newest first
	owed   []engine.Owed
	shards []engine.Shard
	// leftOut are minutes.
	leftOut []int64
	// Of these the rows are damaged: records, and the definitions of timers.
	records     map[engine.Key]bool
	definitions map[engine.TimerID]bool
}

func (s *shelf) Timer(context.Context, engine.TimerID) (*engine.Timer, error) {
	return nil, engine.ErrNotFound
}

func (s *shelf) LeftOut(context.Context, int64, int64) ([]int64, error) { return s.leftOut, nil }

func (s *shelf) Shards(context.Context) ([]engine.Shard, error) { return s.shards, nil }

func (s *shelf) Lives(_ context.Context, after engine.TimerID, limit int) (ls []engine.Life, err error) {
	for _, l := range s.lives {
		if l.ID > after && len(ls) < limit {
			if s.definitions[l.ID] {
				return nil, &engine.Damage{Key: engine.Key{Timer: l.ID}, Row: "a definition", Err: errors.New("cut")}
			}
			ls = append(ls, l)
		}
	}
	return ls, nil
}

func (s *shelf) Owed(_ context.Context, _ engine.Set, _, _ int64, yield func([]engine.Owed) error) error {
	return yield(s.owed)
}

func (s *shelf) OwedPage(_ context.Context, id engine.TimerID, after int64, limit int) (os []engine.Owed, err error) {
	for _, o := range s.owed {
		if o.Key.Timer == id && o.Key.Due > after && len(os) < limit {
			os = append(os, o)
		}
	}
	return os, nil
}

func (s *shelf) Tasks(_ context.Context, f engine.TaskFilter, before engine.Key, limit int) (ts []*engine.Task, next engine.Key, err error) {
	for _, t := range s.tasks {
		if before != (engine.Key{}) && t.Key.Compare(before) >= 0 || !f.Matches(t) {
			continue
		}
		switch damaged := s.records[t.Key]; {
		case len(ts) == limit, damaged && len(ts) > 0:
			return ts, next, nil
		case damaged:
			return nil, next, &engine.Damage{Key: t.Key, Row: "a record", Err: errors.New("cut")}
		}
		ts, next = append(ts, t), t.Key
	}
	return ts, engine.Key{}, nil
}

// put adds records and keeps the order.
func (s *shelf) put(ts ...*engine.Task) {
	s.tasks = append(s.tasks, ts...)
	slices.SortStableFunc(s.tasks, func(a, b *engine.Task) int { return b.Key.Compare(a.Key) })
}

const (
	verifyStart = int64(1795000000000)
	verifyEnd   = verifyStart + 3_600_000
)

// verify runs a verification of the whole hour; findings are words.
func (s *shelf) verify(t *testing.T, change func(*ledger)) (findings []string, v Verdict) {
	t.Helper()
	g := &ledger{
		cold: s, Request: Request{From: verifyStart, To: verifyEnd}, pace: func(time.Duration) {},
		tell: func(f *Finding) error {
			word := fmt.Sprintf("%s %s +%v", f.Kind, f.Timer, time.Duration(f.Due-verifyStart)*time.Millisecond)
			if f.Count > 1 {
				word += fmt.Sprintf("…%v ×%d", time.Duration(f.DueLast-verifyStart)*time.Millisecond, f.Count)
			}
			findings = append(findings, word)
			return nil
		},
	}
	if change != nil {
		change(g)
	}
	v, err := g.verify(context.Background(), verifyEnd+1000, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(findings)
	return findings, v
}

// past makes a good history of random timers in that hour, from what a timer's
// owner did and when. It follows the words of the API, not the rule: a timer has
// the dues of its schedule while it is enabled, each from the change on.
func past(r *rand.Rand, timers int) *shelf {
	s := &shelf{shards: make([]engine.Shard, engine.Shards)}
	for i := range s.shards {
		s.shards[i].Watermark = verifyEnd - r.Int64N(60_000)
	}
	for i := range timers {
		s.live(r, engine.TimerID(i*7+1))
	}
	s.put()
	return s
}

func (s *shelf) live(r *rand.Rand, id engine.TimerID) {
	l := engine.Life{ID: id}
	now := verifyStart + r.Int64N(1_000_000)
	cur := &engine.Timer{ID: id, Version: 1, Generation: 1, CreatedAt: now}
	cur.App, cur.Name = "app", fmt.Sprint("t", id)
	redefine := func() {
		kinds := []engine.Schedule{
			{Every: time.Duration(10+r.IntN(100)) * time.Second},
			{Every: time.Duration(10+r.IntN(100)) * time.Second, Jitter: time.Duration(r.IntN(20_000)) * time.Millisecond},
			{Cron: "*/30 * * * * *", TimeZone: "Europe/Berlin"},
			{Cron: "* * * * *", MaxRuns: 1 + r.Int64N(30)},
			{Every: 17 * time.Second, EndAt: now + 60_000 + r.Int64N(600_000)},
			{At: now + 1 + r.Int64N(600_000)},
			{Delay: time.Duration(r.IntN(900_000)) * time.Millisecond, HasDelay: true},
		}
		was := cur.Schedule
		for cur.Schedule == was { // one that is the same would be no change
			cur.Schedule = kinds[r.IntN(len(kinds))]
		}
		if err := plan.Resolve(cur, nil, now); err != nil {
			panic(err)
		}
	}
	redefine()
	w := s.shards[id.Shard()].Watermark
	for {
		cur.UpdatedAt = now
		l.Versions = append(l.Versions, cur)
		next := now + 1 + r.Int64N(1_500_000)
		until := min(next, w)
		s.fired(r, cur, now, until)
		if now = next; now >= verifyEnd || r.IntN(4) == 0 {
			if now < verifyEnd && r.IntN(2) == 0 {
				l.Deleted = now
			} else if until = w; next < w {
				s.fired(r, cur, next, w)
			}
			break
		}
		n := *cur
		cur = &n
		cur.Version++
		switch r.IntN(4) {
		case 0: // another callback
			cur.Callback.URL = fmt.Sprint("http://", cur.Version)
		case 1:
			cur.Generation++
			cur.Status, cur.ValidFrom = engine.Disabled, now
		case 2: // disabled until
			cur.Generation++
			cur.Status, cur.Reason, cur.ValidFrom = engine.Enabled, "r", now+1+r.Int64N(300_000)
		default:
			cur.Generation++
			cur.Status, cur.Reason = engine.Enabled, ""
			redefine()
		}
	}
	s.lives = append(s.lives, l)
}

// fired puts the records of the dues in (from, to] of a version.
func (s *shelf) fired(r *rand.Rand, t *engine.Timer, from, to int64) {
	if t.Status == engine.Disabled {
		return
	}
	p, err := plan.Of(t)
	if err != nil {
		panic(err)
	}
	var run *engine.Task
	put := func(due int64) {
		switch n := r.IntN(20); {
		case n == 0:
			s.owed = append(s.owed, engine.Owed{Key: engine.Key{Timer: t.ID, Due: due}, Generation: t.Generation, NotBefore: due})
			run = nil
		case n < 8:
			if run == nil {
				run = &engine.Task{
					Key: engine.Key{Timer: t.ID, Due: due}, App: t.App, Generation: t.Generation, Status: engine.Skipped, Reason: engine.ReasonMisfire,
					DueLast: due, Lateness: -1,
				}
				s.tasks = append(s.tasks, run)
			}
			run.DueLast = due
			run.Count++
		default:
			s.tasks = append(s.tasks, &engine.Task{
				Key: engine.Key{Timer: t.ID, Due: due}, App: t.App, Generation: t.Generation, Status: engine.Succeeded, Ended: due + 5,
				Attempts: []engine.Attempt{{N: 1, Started: due*1000 + 200, Code: 200}},
			})
			run = nil
		}
	}
	if t.Schedule.OneShot() && t.LastDue <= t.ValidFrom && t.UpdatedAt == t.ValidFrom && from == t.UpdatedAt {
		put(t.LastDue) // given though it was past
	}
	for due, ok := p.Next(from); ok && due <= to; due, ok = p.Next(due) {
		put(due)
	}
}

// TestVerifyProves: a good history is proven, however it is sliced.
func TestVerifyProves(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := past(r, 1+r.IntN(20))
		want, v := s.verify(t, nil)
		if len(want) > 0 {
			t.Fatalf("seed %d: %v", seed, want)
		}
		got, sliced := s.verify(t, func(g *ledger) { g.most = 1 + r.IntN(200) })
		if len(got) > 0 || sliced.Records != v.Records || sliced.Unkept != 0 {
			t.Fatalf("seed %d, in slices: %v, %+v, whole %+v", seed, got, sliced, v)
		}
		var dues, open int64
		for _, x := range s.tasks {
			dues += max(x.Count, 1)
		}
		if open = int64(len(s.owed)); v.Dues != dues+open {
			t.Fatalf("seed %d: %+v, but there are %d dues and %d owed", seed, v, dues, open)
		}
	}
}

// TestVerifyFinds: whatever is changed in a good history is found, however it
// is sliced.
func TestVerifyFinds(t *testing.T) {
	single := func(x *engine.Task) bool { return x.Status == engine.Succeeded }
	runs := func(x *engine.Task) bool { return x.Count > 2 }
	mutations := []struct {
		name   string
		of     func(*engine.Task) bool
		change func(r *rand.Rand, s *shelf, i int)
		want   FindingKind
	}{
		{"a record lost", single, func(_ *rand.Rand, s *shelf, i int) { s.tasks = slices.Delete(s.tasks, i, i+1) }, Gap},
		{"a run lost", runs, func(_ *rand.Rand, s *shelf, i int) { s.tasks = slices.Delete(s.tasks, i, i+1) }, Gap},
		{"left unfinished", single, func(_ *rand.Rand, s *shelf, i int) { s.tasks[i].Status = engine.Retrying }, Gap},
		{"a due shifted", single, func(_ *rand.Rand, s *shelf, i int) { s.tasks[i].Key.Due++; s.put() }, Gap},
		{"another timer's", single, func(_ *rand.Rand, s *shelf, i int) {
			x := *s.tasks[i]
			x.Key.Due += 333
			s.put(&x)
		}, Stray},
		{"early", single, func(_ *rand.Rand, s *shelf, i int) { s.tasks[i].Attempts[0].Started = s.tasks[i].Key.Due*1000 - 1 }, Early},
		{"called again", single, func(_ *rand.Rand, s *shelf, i int) {
			s.tasks[i].Attempts = append(s.tasks[i].Attempts, engine.Attempt{N: 2, Started: s.tasks[i].Key.Due*1000 + 900, Code: 200})
		}, Repeat},
		{"twice", single, func(_ *rand.Rand, s *shelf, i int) {
			x := *s.tasks[i]
			s.put(&x)
		}, Repeat},
		{"in a run and alone", runs, func(_ *rand.Rand, s *shelf, i int) {
			x := *s.tasks[i]
			x.Key.Due, x.Count, x.Status = x.DueLast, 1, engine.Succeeded
			s.put(&x)
		}, Repeat},
		{"overlapping runs", runs, func(_ *rand.Rand, s *shelf, i int) {
			x := *s.tasks[i]
			x.Key.Due++
			s.put(&x)
		}, Repeat},
		{"a run too short", runs, func(_ *rand.Rand, s *shelf, i int) { s.tasks[i].DueLast--; s.tasks[i].Count-- }, Gap},
		{"a run miscounted", runs, func(r *rand.Rand, s *shelf, i int) { s.tasks[i].Count += 1 - 2*r.Int64N(2) }, Miscount},
		{"late", single, func(_ *rand.Rand, s *shelf, i int) { s.tasks[i].Lateness = 11 * time.Second }, FoundLate},
	}
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			for n, seed := 0, uint64(0); n < 100; seed++ {
				r := rand.New(rand.NewPCG(seed, 2))
				s := past(r, 1+r.IntN(4))
				var of []int
				for i, x := range s.tasks {
					if m.of(x) {
						of = append(of, i)
					}
				}
				if len(of) == 0 {
					continue
				}
				n++
				m.change(r, s, of[r.IntN(len(of))])
				_, v := s.verify(t, func(g *ledger) {
					g.Late = 10 * time.Second
					g.most = r.IntN(2) * (1 + r.IntN(50))
				})
				if !v.Failed() || v.Found[m.want] == 0 {
					t.Fatalf("seed %d: not found: %+v", seed, v)
				}
			}
		})
	}
}

// TestVerifySays: what becomes a finding, and what does not, case by case.
func TestVerifySays(t *testing.T) {
	minutely := func(change func(*engine.Timer)) *engine.Timer {
		x := &engine.Timer{ID: 5, Version: 1, Generation: 1, CreatedAt: verifyStart, UpdatedAt: verifyStart}
		x.App, x.Schedule, x.Callback.Timeout = "app", engine.Schedule{Every: time.Minute}, 30*time.Second
		if err := plan.Resolve(x, nil, verifyStart); err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(x)
		}
		return x
	}
	at := func(m int64) int64 { return verifyStart + m*60_000 }
	done := func(m int64) *engine.Task {
		return &engine.Task{Key: engine.Key{Timer: 5, Due: at(m)}, App: "app", Generation: 1, Status: engine.Succeeded, Attempts: []engine.Attempt{{N: 1, Started: at(m) * 1000}}}
	}
	upTo := func(m int64) *shelf {
		s := &shelf{shards: make([]engine.Shard, engine.Shards), lives: []engine.Life{{ID: 5, Versions: []*engine.Timer{minutely(nil)}}}}
		s.shards[engine.TimerID(5).Shard()].Watermark = at(m)
		for i := range m {
			s.put(done(i + 1))
		}
		return s
	}
	drop := func(s *shelf, ms ...int64) {
		s.tasks = slices.DeleteFunc(s.tasks, func(x *engine.Task) bool {
			return slices.Contains(ms, (x.Key.Due-verifyStart)/60_000) && x.Origin == engine.FromSchedule
		})
	}
	for _, c := range []struct {
		name   string
		change func(s *shelf)
		ledger func(*ledger)
		want   []string
		open   int64
	}{
		{"all is well", func(*shelf) {}, nil, nil, 29},
		{"late, for all that is known", func(*shelf) {}, func(g *ledger) { g.Late = 10 * time.Minute }, []string{"late 5 +31m0s…49m0s ×19"}, 29},
		{"not that late", func(*shelf) {}, func(g *ledger) { g.Late = 29 * time.Minute }, nil, 29},
		{"neighbours are one gap", func(s *shelf) { drop(s, 3, 4, 5, 9) }, nil, []string{"gap 5 +3m0s…5m0s ×3", "gap 5 +9m0s"}, 29},
		{"what is owed is open", func(s *shelf) {
			drop(s, 3, 4, 5)
			s.owed = []engine.Owed{{Key: engine.Key{Timer: 5, Due: at(3) - 1}, To: at(4)}, {Key: engine.Key{Timer: 5, Due: at(5)}}}
		}, nil, nil, 32},
		{"what is owed is late when nothing was sent", func(s *shelf) {
			drop(s, 3, 4, 5, 6, 7)
			s.owed = []engine.Owed{
				{Key: engine.Key{Timer: 5, Due: at(3) - 1}, To: at(4)},
				{Key: engine.Key{Timer: 5, Due: at(5)}},
				{Key: engine.Key{Timer: 5, Due: at(6)}, Begun: true},
				{Key: engine.Key{Timer: 5, Due: at(7)}, Task: &engine.Task{Attempts: []engine.Attempt{{}}}},
			}
		}, func(g *ledger) { g.Late = 29 * time.Minute }, []string{"late 5 +3m0s…5m0s ×3"}, 34},
		{"a journal that is not read may have what is owed or unknown", func(s *shelf) {
			drop(s, 3)
			s.owed = []engine.Owed{{Key: engine.Key{Timer: 5, Due: at(3)}}}
			s.tasks[0].Lateness = 11 * time.Minute
		}, func(g *ledger) { g.Late, g.stopped = 10*time.Minute, true }, []string{"late 5 +30m0s"}, 30},
		{"a manual task is beside the plan", func(s *shelf) {
			s.put(&engine.Task{Key: engine.Key{Timer: 5, Due: at(3) + 17}, App: "app", Origin: engine.FromManual, Generation: 1, Status: engine.Dead})
		}, nil, nil, 29},
		{"a manual task is no due", func(s *shelf) {
			drop(s, 3)
			s.put(&engine.Task{Key: engine.Key{Timer: 5, Due: at(3) + 17}, App: "app", Origin: engine.FromManual, Generation: 1, Status: engine.Succeeded})
		}, nil, []string{"gap 5 +3m0s"}, 29},
		{"successes may be left out", func(s *shelf) { drop(s, 3) }, func(g *ledger) { g.sampled = true }, []string{"unproven 5 +3m0s"}, 29},
		{
			"a minute was left out", func(s *shelf) {
				drop(s, 3, 4, 5)
				s.leftOut = []int64{at(2) / minute * minute, at(4) / minute * minute}
			}, nil,
			[]string{"gap 5 +3m0s", "gap 5 +5m0s", "unproven 5 +4m0s"},
			29,
		},
		{"a run from before the window", func(s *shelf) {
			drop(s, 1, 2, 3, 4)
			s.put(&engine.Task{Key: engine.Key{Timer: 5, Due: at(1)}, App: "app", Generation: 1, Status: engine.Missed, DueLast: at(4), Count: 4})
		}, func(g *ledger) { g.From = at(3) }, nil, 29},
		{"a timer that is gone", func(s *shelf) { s.lives = nil }, nil, nil, 0},
		{"another app's", func(s *shelf) { drop(s, 3) }, func(g *ledger) { g.App = "other" }, nil, 0},
		{"deleted", func(s *shelf) { s.lives[0].Deleted = at(28) + 1; drop(s, 29, 30) }, nil, nil, 0},
		{"disabled, and then enabled", func(s *shelf) {
			was := s.lives[0].Versions[0]
			off, on := *was, *was
			off.Version, off.Generation, off.Status, off.UpdatedAt, off.ValidFrom = 2, 2, engine.Disabled, at(10), at(10)
			on.Version, on.Generation, on.UpdatedAt, on.ValidFrom = 3, 3, at(20), at(20)
			s.lives[0].Versions = []*engine.Timer{was, &off, &on}
			drop(s, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20)
			for _, x := range s.tasks {
				if x.Key.Due > at(20) {
					x.Generation = 3
				}
			}
		}, nil, nil, 29},
		{"caught up", func(s *shelf) {
			was := s.lives[0].Versions[0]
			off := *was
			off.Version, off.Generation, off.Status, off.UpdatedAt, off.ValidFrom = 2, 2, engine.Disabled, at(10), at(10)
			s.lives[0].Versions = []*engine.Timer{was, &off}
			for _, x := range s.tasks {
				if x.Key.Due > at(10) {
					x.Origin, x.Generation = engine.FromCatchUp, 3
				}
			}
		}, nil, nil, 0},
		{"the clock was set back", func(s *shelf) {
			// At minute 20, by the clock that had shown 25.
			was := s.lives[0].Versions[0]
			now := *was
			now.Version, now.Generation, now.UpdatedAt, now.ValidFrom = 2, 2, at(20), at(25)
			s.lives[0].Versions = []*engine.Timer{was, &now}
			for _, x := range s.tasks {
				if x.Key.Due > at(25) {
					x.Generation = 2
				}
			}
		}, nil, nil, 29},
		{"called after a delete", func(s *shelf) { s.lives[0].Deleted = at(28) }, nil, []string{"stray 5 +29m0s", "stray 5 +30m0s"}, 0},
		{"called after a disable", func(s *shelf) {
			was := s.lives[0].Versions[0]
			off := *was
			off.Version, off.Generation, off.Status, off.UpdatedAt, off.ValidFrom = 2, 2, engine.Disabled, at(28), at(28)
			s.lives[0].Versions = []*engine.Timer{was, &off}
		}, nil, []string{"stray 5 +29m0s", "stray 5 +30m0s"}, 0},
		{"called by the former schedule", func(s *shelf) {
			was := s.lives[0].Versions[0]
			now := *was
			now.Version, now.Generation, now.UpdatedAt, now.ValidFrom = 2, 2, at(28), at(28)
			s.lives[0].Versions = []*engine.Timer{was, &now}
		}, nil, []string{"stray 5 +29m0s", "stray 5 +30m0s"}, 29},
		{"called again after a delete", func(s *shelf) {
			s.lives[0].Deleted = at(29) - 1
			drop(s, 29, 30)
			s.tasks[0].Attempts = append(s.tasks[0].Attempts, engine.Attempt{N: 2, Started: (at(29) + 30_000 + 10_000) * 1000})
			s.tasks[0].Attempts[0].ErrorClass = "status"
		}, nil, []string{"stray 5 +28m0s"}, 0},
		{"in flight when it was deleted", func(s *shelf) {
			s.lives[0].Deleted = at(29) - 1
			drop(s, 29, 30)
			s.tasks[0].Attempts[0].Started = (at(29) - 1 + 30_000 + 10_000) * 1000
		}, nil, nil, 0},
		{"due while the delete took hold", func(s *shelf) { s.lives[0].Deleted = at(30) - 10_000 }, nil, nil, 0},
		{"tried again by hand after a disable", func(s *shelf) {
			was := s.lives[0].Versions[0]
			off := *was
			off.Version, off.Generation, off.Status, off.UpdatedAt, off.ValidFrom = 2, 2, engine.Disabled, at(28), at(28)
			s.lives[0].Versions = []*engine.Timer{was, &off}
			drop(s, 29, 30)
			s.tasks[0].Attempts[0].Started, s.tasks[0].Origin = at(40)*1000, engine.FromRedrive
		}, nil, nil, 0},
		{"archived", func(s *shelf) { s.lives[0].Versions[0].Status = engine.Finished; drop(s, 7) }, nil, []string{"gap 5 +7m0s"}, 29},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := upTo(30)
			c.change(s)
			got, v := s.verify(t, c.ledger)
			if !slices.Equal(got, c.want) || v.Open != c.open {
				t.Errorf("got %v, %d open; want %v, %d: %+v", got, v.Open, c.want, c.open, v)
			}
		})
	}
}

func TestVerifyRefuses(t *testing.T) {
	now := verifyEnd
	for _, c := range []struct {
		v    Request
		want string
	}{
		{Request{From: now - 10, To: now - 10}, "out_of_range"},
		{Request{From: now + 1, To: now + 2}, "out_of_range"},
		{Request{From: now - 3_660_001, To: now}, "older_than_history"},
		{Request{From: now - 3_650_000, To: now - 3_610_000}, "older_than_history"},
		{Request{From: now - 3_600_001, To: now}, ""}, // an hour ago, when it was asked for
		{Request{From: now - 3_600_000, To: now}, ""},
	} {
		got := ""
		if f, ok := c.v.Check(now, time.Hour).(*engine.Fault); ok {
			got = cmp.Or(f.Code, f.Detail)
			if len(f.Fields) > 0 {
				got = f.Code
			}
		}
		if got != c.want || got == "" && c.v.From < now-3_600_000 {
			t.Errorf("%+v: %q, want %q", c.v, got, c.want)
		}
	}
}

// A record that cannot be read is named, and so is the gap that it leaves; so is a
// definition. All else is verified as before.
func TestDamagedRows(t *testing.T) {
	s := &shelf{shards: make([]engine.Shard, engine.Shards), records: map[engine.Key]bool{}, definitions: map[engine.TimerID]bool{}}
	for i := range s.shards {
		s.shards[i].Watermark = verifyEnd
	}
	for id := engine.TimerID(1); id <= 3; id++ {
		x := &engine.Timer{ID: id, Version: 1, Generation: 1, CreatedAt: verifyStart, UpdatedAt: verifyStart}
		x.Schedule.Every = time.Minute
		if err := plan.Resolve(x, nil, verifyStart); err != nil {
			t.Fatal(err)
		}
		s.lives = append(s.lives, engine.Life{ID: id, Versions: []*engine.Timer{x}})
		for due := verifyStart + minute; due < verifyEnd; due += minute {
			s.put(&engine.Task{Key: engine.Key{Timer: id, Due: due}, Generation: 1, Status: engine.Succeeded})
		}
	}
	want := func(records int64, want ...string) {
		t.Helper()
		for _, most := range []int{0, 10} { // slices
			found, v := s.verify(t, func(g *ledger) { g.most = most })
			if !slices.Equal(found, want) || v.Records != records || v.Failed() != (len(want) > 0) {
				t.Errorf("slices of %d: found %q in %d records, want %q", most, found, v.Records, want)
			}
		}
	}
	want(177)
	s.records[engine.Key{Timer: 1, Due: verifyStart + 7*minute}] = true
	s.records[engine.Key{Timer: 2, Due: verifyStart + 59*minute}] = true // the first that is read
	s.records[engine.Key{Timer: 2, Due: verifyStart + 30*minute}] = true
	s.records[engine.Key{Timer: 1, Due: verifyStart + 30*minute}] = true
	bad := []string{
		"damaged 1 +30m0s", "damaged 1 +7m0s", "damaged 2 +30m0s", "damaged 2 +59m0s",
		"gap 1 +30m0s", "gap 1 +7m0s", "gap 2 +30m0s", "gap 2 +59m0s",
	}
	want(173, bad...)
	// A pending task whose row cannot be read is open, and no gap.
	s.owed = []engine.Owed{engine.ReadOwed(engine.Key{Timer: 1, Due: verifyStart + 7*minute}, nil)}
	told := slices.Insert(slices.Clone(bad), 2, "damaged 1 +7m0s") // besides the record
	want(173, slices.Delete(told, 6, 7)...)
	s.owed = nil
	s.definitions[3] = true
	since := time.Duration(verifyStart) * time.Millisecond
	want(173, slices.Insert(bad, 4, fmt.Sprintf("damaged 3 +-%v", since))...)
}

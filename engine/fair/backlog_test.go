package fair

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A backlog of 5,000 waits for a target that answers in 20 ms, and 50 calls a second come on
// time: these find a place at once. Without them the backlog has all places of the target.
func TestBacklogLeavesRoom(t *testing.T) {
	for _, beside := range []int{50, 0} {
		synctest.Test(t, func(t *testing.T) {
			const backlog, took, length = 5000, 20 * time.Millisecond, 3 * time.Second
			most, calls := 0, 0
			var latest, over time.Duration
			lock := make(chan struct{}, 1)
			began := time.Now()
			q := New(Config[*due]{Places: 8192, PerApp: 8192, PerTarget: startLimit, Run: func(d *due) Result {
				lock <- struct{}{}
				if calls++; d.s == nil {
					most, over = max(most, calls), time.Since(began)
				} else {
					latest = max(latest, time.Since(d.at))
				}
				<-lock
				time.Sleep(took)
				lock <- struct{}{}
				calls--
				<-lock
				return Result{Ended: Answered, Took: took}
			}})
			push := func(l *Lane[*due], s *stream, n int) {
				var items []*Item[*due]
				for range n {
					d := &due{s: s, at: time.Now()}
					d.Item = Item[*due]{Value: d, Lane: l, Ready: time.Now().UnixMilli()}
					items = append(items, &d.Item)
				}
				q.Push(items...)
			}
			if beside > 0 {
				push(q.Lane("app", "to", ""), &stream{}, 1)
			}
			push(q.BacklogLane("app", "to", "", 0), nil, backlog)
			for range int(length.Seconds()) * beside {
				time.Sleep(time.Second / time.Duration(beside))
				push(q.Lane("app", "to", ""), &stream{}, 1)
			}
			time.Sleep(5 * time.Second)
			q.Close()
			q.Wait()
			if latest > 0 {
				t.Errorf("a call beside the backlog was %v late", latest)
			}
			if beside == 0 && (most != startLimit || over > 2200*time.Millisecond) {
				t.Errorf("%d calls at most were in flight, and the backlog was over after %v", most, over)
			}
			if beside > 0 && over > 4500*time.Millisecond {
				t.Errorf("beside other calls the backlog was over after %v", over)
			}
		})
	}
}

// Beside calls that begin on time, 100 a second, a backlog of 300 has 4 calls in flight at first, and
// 4 more after each 60 ms, up to half of the places, however long the calls take. A backlog
// that comes a second or more after the end of the former one begins slowly again.
func TestBacklogBeginsSlowly(t *testing.T) {
	for _, took := range []time.Duration{20 * time.Millisecond, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			const backlog, half = 300, startLimit / 2
			var mu sync.Mutex
			var came time.Time
			calls, most := 0, [5]int{} // in flight; the most of them up to a step since the backlog came
			var over atomic.Int64
			q := New(Config[*due]{Places: 8192, PerApp: 8192, PerTarget: startLimit, Run: func(d *due) Result {
				if d.s != nil {
					time.Sleep(time.Millisecond)
					return Result{Ended: Answered, Took: took}
				}
				mu.Lock()
				calls++
				for step := int(time.Since(came) / backlogStep); step < len(most); step++ {
					most[step] = max(most[step], calls)
				}
				mu.Unlock()
				time.Sleep(took)
				mu.Lock()
				calls--
				mu.Unlock()
				over.Add(1)
				return Result{Ended: Answered, Took: took}
			}})
			push := func(l *Lane[*due], s *stream, n int) {
				items := make([]*Item[*due], n)
				for i := range items {
					d := &due{s: s, at: time.Now()}
					d.Item = Item[*due]{Value: d, Lane: l, Ready: time.Now().UnixMilli()}
					items[i] = &d.Item
				}
				q.Push(items...)
			}
			slowly, atOnce := [5]int{4, 8, 12, 16, 20}, [5]int{half, half, half, half, half}
			for _, x := range []struct {
				pause time.Duration // since the end of the former backlog
				want  [5]int
			}{{2 * time.Second, slowly}, {500 * time.Millisecond, atOnce}, {2 * time.Second, slowly}} {
				time.Sleep(x.pause)
				mu.Lock()
				came, most = time.Now(), [5]int{}
				over.Store(0)
				mu.Unlock()
				for n := 0; n < 30 || over.Load() < backlog; n++ {
					push(q.Lane("app", "to", ""), &stream{}, 1)
					if n == 0 {
						push(q.BacklogLane("app", "to", "", 0), nil, backlog)
					}
					time.Sleep(10 * time.Millisecond)
				}
				if most != x.want {
					t.Errorf("calls of %v, %v after the former backlog: %v were in flight, want %v", took, x.pause, most, x.want)
				}
			}
			q.Close()
			q.Wait()
		})
	}
}

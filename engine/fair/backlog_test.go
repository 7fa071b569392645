package fair

import (
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

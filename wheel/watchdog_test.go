package wheel

import (
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/RussellLuo/timingwheel"
)

// wedge leaves a clockwork as issue #53 leaves it: with bucket locks nobody will
// ever give back, so that its flusher and whoever adds to it stand still. The function it
// returns undoes that, which only tests can.
func wedge(works *timingwheel.TimingWheel) (undo func()) {
	var locks []*sync.Mutex
	buckets := reflect.ValueOf(works).Elem().FieldByName("buckets")
	for i := range buckets.Len() {
		mu := (*sync.Mutex)(buckets.Index(i).Elem().FieldByName("mu").Addr().UnsafePointer())
		mu.Lock()
		locks = append(locks, mu)
	}
	return func() {
		for _, mu := range locks {
			mu.Unlock()
		}
	}
}

// A wedged clockwork makes nothing late that the hand knew of, nothing later than a
// poll, and is replaced. This runs on the real clock: a bubble's stands still while
// a goroutine waits for a lock.
func TestWedge(t *testing.T) {
	var mu sync.Mutex
	var lates []time.Duration
	w := New(Config{}, func(due int64, batch []int) {
		mu.Lock()
		defer mu.Unlock()
		for range batch {
			lates = append(lates, time.Since(time.UnixMilli(due)))
		}
	})
	defer start(w)()
	works := running(w)
	undo := wedge(works.works)

	base := time.Now().UnixMilli()
	const n = 40
	for i := range n {
		w.Add(base+100+int64(i)*30, i)
	}
	for range 150 {
		time.Sleep(10 * time.Millisecond)
		w.Add(time.Now().UnixMilli()+20, 0) // found by poll at the latest
	}
	deadline := time.Now().Add(10 * time.Second)
	for w.Len() > 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
	}
	s := w.Stats()
	if s.Rebuilds != 1 || s.Missed == 0 || s.Stuck != 1 {
		t.Errorf("want one clockwork replaced, and stuck: %+v", s)
	}
	undo()
	for !works.over() && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if s := w.Stats(); s.Stuck != 0 {
		t.Errorf("unwedged, and still stuck: %+v", s)
	}
	mu.Lock()
	defer mu.Unlock()
	worst := slices.Max(lates)
	t.Logf("%d fired, worst %v late, %+v", len(lates), worst, s)
	if worst > poll+200*time.Millisecond {
		t.Errorf("worst %v late", worst)
	}
}

// A clock step arms a new clockwork for every drawer, and the old one has no say any more.
func TestRewind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStepped(t)
		defer start(s.Wheel)()
		synctest.Wait()
		for i := range 100 {
			s.Add(s.wall().UnixMilli()+3600_000+int64(i)*drawerLen, i)
		}
		old := s.works
		s.set(-time.Minute)
		time.Sleep(poll + 2*turning)
		synctest.Wait()
		if s.works == old || !old.over() {
			t.Fatal("the old clockwork still runs")
		}
		s.called(old, s.order[0].key)
		if s.calls > 0 {
			t.Error("the old clockwork's call was heard")
		}
		for _, d := range s.order {
			if d.armed != d.earliest() {
				t.Fatalf("drawer %d is not armed", d.key)
			}
		}
	})
}

// A clockwork that ends slowly or never must not keep Run from ending.
func TestWedgedAtTheEnd(t *testing.T) {
	w := New(Config{}, func(int64, []int) {})
	stop := start(w)
	works := running(w)
	undo := wedge(works.works)
	w.Add(time.Now().UnixMilli()+100, 0)
	time.Sleep(150 * time.Millisecond)
	begin := time.Now()
	stop()
	if took := time.Since(begin); took > goodbye+time.Second {
		t.Errorf("Run ended after %v", took)
	}
	undo()
	<-works.ended
}

// running waits until a wheel runs, and returns its clockwork.
func running(w *Wheel[int]) *clockwork {
	for {
		w.mu.Lock()
		works := w.works
		w.mu.Unlock()
		if works != nil {
			return works
		}
		time.Sleep(time.Millisecond)
	}
}

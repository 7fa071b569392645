package scheduler

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// What is begun is waited for; what comes while or after one waits is not begun.
func TestBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b background
		var mu sync.Mutex
		ended := 0
		work := func() {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			ended++
			b.Go(func() { t.Error("begun while one waits") })
		}
		b.Go(work)
		b.Go(work)
		b.Wait()
		if ended != 2 {
			t.Errorf("%d of 2 have ended", ended)
		}
		b.Go(func() { t.Error("begun after the end") })
		synctest.Wait()
	})
}

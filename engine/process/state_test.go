package process

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// What is begun is waited for; what comes while or after one waits is not begun.
func TestBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewState()
		var mu sync.Mutex
		ended := 0
		work := func(context.Context) {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			ended++
			s.Go(func(context.Context) { t.Error("begun while one waits") })
		}
		s.Go(work)
		s.Go(work)
		s.Wait()
		if ended != 2 {
			t.Errorf("%d of 2 have ended", ended)
		}
		s.Go(func(context.Context) { t.Error("begun after the end") })
		synctest.Wait()
	})
}

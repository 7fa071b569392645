package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xtimer/cmd/xtimer/remote"
)

// TestBenchProgress: the line of a run stays one row of the terminal, however
// narrow that is.
func TestBenchProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shape := &benchShape{burst: 1_000_000}
		r := newBenchReceiver(1_000_000, time.Now(), shape)
		l := &benchLoad{n: 1_000_000}
		l.made.Store(1_000_000)
		r.firsts.Store(1_000_000)
		r.repeats.Store(1_000_000)
		var out bytes.Buffer
		p := &progress{make(chan struct{}), make(chan struct{})}
		go p.run(&out, l, r)
		time.Sleep(time.Second + time.Millisecond)
		p.stop()

		const width = 80
		column, wraps, longest := 0, true, 0
		for s := out.String(); s != ""; {
			switch {
			case strings.HasPrefix(s, "\x1b[?7l"):
				wraps, s = false, s[5:]
			case strings.HasPrefix(s, "\x1b[?7h"):
				wraps, s = true, s[5:]
			case strings.HasPrefix(s, "\x1b[K"):
				s = s[3:]
			case s[0] == '\r':
				column, s = 0, s[1:]
			default:
				column, s = column+1, s[1:]
				longest = max(longest, column)
				if column > width && wraps {
					t.Fatalf("a second row begins at %q", s)
				}
			}
		}
		if longest <= width || !wraps || column != 0 {
			t.Errorf("the longest line has %d characters; at the end the column is %d, wrapping %t", longest, column, wraps)
		}
	})
}

// TestBenchMissing: the wait for what does not come ends, and it is said.
func TestBenchMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shape := &benchShape{burst: 4}
		start := time.Now()
		r := newBenchReceiver(4, start, shape)
		l := &benchLoad{n: 4, start: start, state: []madeState{madeTimely, madeTimely, notMade, madeLate}}
		call := func(i int) {
			req := httptest.NewRequest(http.MethodPost, "/call", nil)
			req.Header.Set(numberHeader, fmt.Sprint(i))
			r.ServeHTTP(httptest.NewRecorder(), req)
		}
		time.Sleep(7 * time.Millisecond)
		call(1)
		call(1)
		time.Sleep(time.Second)
		call(3)
		r.await(context.Background(), func() int64 { return 3 }, start)
		if took := time.Since(start) - time.Second; took < patience || took > patience+time.Second {
			t.Errorf("waited %v", took)
		}
		b := &bench{client: &remote.Plain{Base: "http://s"}, shape: *shape}
		res := newBenchResult(b, "", l, r)
		if res.Missing != 1 || res.Arrived != 2 || res.Repeats != 1 || res.Early != 0 || res.LateMade != 1 || res.Lateness["max"] != 7 {
			t.Errorf("%+v", res)
		}
		if err := res.verdict(); err == nil || err.Error() != "1 calls are missing" {
			t.Error(err)
		}
	})
}

func TestBenchShape(t *testing.T) {
	t.Parallel()
	start := time.UnixMilli(1_800_000_000_000)
	for _, x := range []struct {
		shape benchShape
		n     int
		after time.Duration // the due of the last, from start
	}{
		{benchShape{rate: 1000, length: 3 * time.Second}, 3000, 2999 * time.Millisecond},
		{benchShape{rate: 3, length: time.Second}, 3, 666 * time.Millisecond},
		{benchShape{rate: 1, burst: 10}, 10, 0},
		{benchShape{rate: 1, burst: 10, spread: time.Second}, 10, 900 * time.Millisecond},
		{benchShape{rate: 0, length: time.Second}, 0, 0},
		{benchShape{rate: 1, length: time.Second, spread: time.Second}, 0, 0},
		{benchShape{rate: 1e9, length: time.Hour}, 0, 0},
	} {
		n, err := x.shape.check()
		if n != x.n || (err == nil) != (x.n > 0) {
			t.Errorf("%+v: %d, %v", x.shape, n, err)
		}
		if n > 0 && x.shape.due(start, n-1) != start.Add(x.after) {
			t.Errorf("%+v: the last is due at %v", x.shape, x.shape.due(start, n-1))
		}
	}
}

func TestBenchHistogram(t *testing.T) {
	t.Parallel()
	const us = time.Microsecond
	got := histogramOf([]time.Duration{-us, 40 * us, 50 * us, 51 * us, 2000 * us})
	want := "[{0.01 1} {0.02 0} {0.05 2} {0.1 1} {0.2 0} {0.5 0} {1 0} {2 1}]"
	if fmt.Sprint(got) != want {
		t.Errorf("%v", got)
	}
	if len(histogramOf(nil)) != 0 {
		t.Error("there are buckets of nothing")
	}
}

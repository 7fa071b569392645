package flow

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

// most is the greatest number of calls in a half-open window: the naïve counter.
func most(calls []time.Duration, per time.Duration) (n int) {
	from := 0
	for i, at := range calls {
		for calls[from] <= at-per {
			from++
		}
		n = max(n, i-from+1)
	}
	return n
}

// demand drives a bucket: calls are wanted in bursts, some of them come late, some are not
// made after all.
func demand(b *Bucket, rng *rand.Rand, per time.Duration, n int) (calls []time.Duration) {
	now := time.Duration(0)
	for len(calls) < n {
		at := b.next(now)
		if at < now {
			panic("next is before now")
		}
		now = at
		switch rng.IntN(200) {
		case 0:
			now += time.Duration(rng.Int64N(int64(per) + 1)) // nobody wanted one
		case 1, 2, 3, 4:
			now += time.Duration(rng.Int64N(int64(per)/50 + 1)) // the timer was late
		}
		if b.next(now) != now {
			panic("an instant that was allowed is not any more")
		}
		former := b.take(now)
		if rng.IntN(100) == 0 {
			b.refund(former, now)
			continue
		}
		calls = append(calls, now)
	}
	return calls
}

func TestABucketNeverHandsOutMoreThanItsRateInAWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.SampledFrom([]int{1, 2, 3, 7, 10, 64, 65, 100, 999, 1000, 20_000}).Draw(t, "rate")
		per := rapid.SampledFrom([]time.Duration{time.Second, 1500 * time.Millisecond, time.Minute, time.Hour, 24 * time.Hour}).Draw(t, "per")
		burst := max(1, rapid.SampledFrom([]int{1, 1, 2, rate / 2, rate}).Draw(t, "burst"))
		burst = min(burst, rate)
		b := newBucket(rate, per, burst, 0)
		calls := demand(&b, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)), per, min(3*rate+50, 3000))
		if n := most(calls, per); n > rate {
			t.Fatalf("%d calls in a window of %v, of %d a window, burst %d", n, per, rate, burst)
		}
	})
}

// What the test above relies on sees a bucket that is wrong by one call.
func TestTheCounterOfWindowsSeesABucketThatIsWrong(t *testing.T) {
	for name, spoil := range map[string]func(*Bucket){
		"too close":       func(b *Bucket) { b.every -= b.every / 20 },
		"a credit unpaid": func(b *Bucket) { b.credit += 2 * b.every },
		"no window":       func(b *Bucket) { b.window = nil },
	} {
		t.Run(name, func(t *testing.T) {
			burst := 1
			if name == "no window" {
				burst = 5
			}
			b := newBucket(50, time.Second, burst, 0)
			spoil(&b)
			rng := rand.New(rand.NewPCG(1, 1))
			if n := most(demand(&b, rng, time.Second, 500), time.Second); n <= 50 {
				t.Errorf("%d in a window: the counter sees nothing", n)
			}
		})
	}
}

func TestABucketHandsOutItsRate(t *testing.T) {
	for _, c := range []struct {
		rate, burst int
		late        time.Duration // each wake-up
		want        float64       // of the rate
	}{
		{10, 1, 0, 1},
		{10, 1, 500 * time.Microsecond, 0.99},
		{1000, 1, 500 * time.Microsecond, 0.99},
		{50_000, 1, 500 * time.Microsecond, 0.99},
		{10, 10, 0, 0.98},
		{1000, 100, 0, 0.98},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			b, now, n := newBucket(c.rate, time.Second, c.burst, 0), time.Duration(0), 0
			for now < 100*time.Second {
				if at := b.next(now); at > now {
					now = at + c.late
				}
				b.take(now)
				n++
			}
			if got := float64(n) / float64(100*c.rate); got < c.want {
				t.Errorf("%.4f of the rate, want at least %v", got, c.want)
			}
		})
	}
}

func TestABurstGoesAtOnce(t *testing.T) {
	b := newBucket(10, time.Second, 4, 0)
	now := 5 * time.Second
	for i := range 4 {
		if at := b.next(now); at != now {
			t.Fatalf("call %d of the burst may be made after %v", i, at-now)
		}
		b.take(now)
	}
	if at := b.next(now) - now; at != 100*time.Millisecond {
		t.Errorf("the next call after %v, want 100ms", at)
	}
}

func TestGatesAreSmall(t *testing.T) {
	// 100,000 keys: about 17 MB, and 56 MB more where all have a burst.
	if n := unsafe.Sizeof(Gate{}); n > 136 {
		t.Errorf("a gate takes %d bytes", n)
	}
	if n := unsafe.Sizeof(window{}); n > 320 {
		t.Errorf("a window takes %d bytes", n)
	}
}

func BenchmarkAdmit(b *testing.B) {
	for _, burst := range []int{1, 10} {
		b.Run(fmt.Sprint("burst ", burst), func(b *testing.B) {
			var g Gate
			g.Set(&Limit{Rate: 1000, Per: time.Second, Burst: burst}, 0)
			now := time.Duration(0)
			for b.Loop() {
				_, now = g.Ask(now, false)
				g.Give(g.Take(now, false), Ended{Made: true}, now)
			}
		})
	}
}

func BenchmarkManyKeys(b *testing.B) {
	gates := make([]Gate, 100_000)
	l := &Limit{Rate: 10, Per: time.Second, Burst: 1}
	for i := range gates {
		gates[i].Set(l, 0)
	}
	order := rand.New(rand.NewPCG(1, 1)).Perm(len(gates))
	now, i := time.Duration(0), 0
	for b.Loop() {
		g := &gates[order[i%len(order)]]
		if by, _ := g.Ask(now, false); by == ByNone {
			g.Give(g.Take(now, false), Ended{Made: true}, now)
		}
		i++
		now += time.Microsecond
	}
}

func TestTheOrderOfWhatHoldsACall(t *testing.T) {
	var g Gate
	l := &Limit{Rate: 1, Per: time.Second, Burst: 1, Concurrency: 1, Cooldown: true, Breaker: Breaker{Share: 0.5, Of: 2, Within: time.Minute, Open: 10 * time.Second, MaxOpen: 15 * time.Second}}
	g.Set(l, 0)
	var seen []string
	ask := func(now time.Duration) (at time.Duration) {
		by, at := g.Ask(now, false)
		seen = append(seen, fmt.Sprintf("%v %v", by, at))
		return at
	}
	ask(0)
	p := g.Take(0, false)
	ask(0) // no place
	g.Give(p, Ended{Made: true, Bad: true, Close: 3 * time.Second}, 0)
	ask(0) // the rate
	ask(time.Second)
	now := 3 * time.Second
	ask(now)
	g.Give(g.Take(now, false), Ended{Made: true, Bad: true}, now) // the second bad one
	g.Pause(5 * time.Second)
	ask(4 * time.Second)
	g.Pause(0)
	ask(4 * time.Second)
	now = 13 * time.Second
	ask(now)
	p = g.Take(now, false)
	g.Give(p, Ended{Made: true, Bad: true}, now)
	ask(14 * time.Second)
	now = 28 * time.Second
	g.Give(g.Take(now, false), Ended{Made: true}, now)
	ask(29 * time.Second)
	want := []string{
		" 0s", "flow " + Never.String(), "flow 1s", "cooldown 3s", " 3s", "pause 5s", "breaker 13s", " 13s", "breaker 28s", " 29s",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("\n%v, want\n%v", seen, want)
	}
}

func TestAfterAStartAKeyWaits(t *testing.T) {
	for per, want := range map[time.Duration]time.Duration{time.Second: time.Second, time.Hour: time.Minute} {
		var g Gate
		g.Set(&Limit{Rate: 5, Per: per, Burst: 5}, 0)
		g.Started()
		if by, at := g.Ask(0, false); by != ByFlow || at != want {
			t.Errorf("per %v: %v at %v, want flow at %v", per, by, at, want)
		}
	}
}

func TestATaskKeepsItsPlace(t *testing.T) {
	var g Gate
	g.Set(&Limit{Concurrency: 1, HoldTask: true}, 0)
	g.Give(g.Take(0, false), Ended{Made: true, Bad: true, Keeps: g.Keeps()}, 0)
	other, _ := g.Ask(0, false)
	own, _ := g.Ask(0, true)
	if other != ByFlow || own != ByNone {
		t.Errorf("another is held by %q, the task by %q", other, own)
	}
	g.Give(g.Take(1, true), Ended{Made: true, Keeps: true}, 1)
	if by, _ := g.Ask(1, false); by != ByFlow {
		t.Error("the task has not ended, and another has its place")
	}
	g.Leave()
	if by, _ := g.Ask(1, false); by != ByNone {
		t.Errorf("the next is held by %v", by)
	}
}

func TestTheLongestMatchWins(t *testing.T) {
	var r Rules
	one, two, exact := &Limit{Rate: 1}, &Limit{Rate: 2}, &Limit{Rate: 3}
	name := func(key string) Name { return Name{OfFlow, "shop", key} }
	r.Set(name("user-*"), &Rule{Limit: one, Paused: time.Second})
	r.Set(name("user-1*"), &Rule{Limit: two})
	r.Set(name("user-17"), &Rule{Limit: exact})
	r.Set(name("user-18"), &Rule{Cooldown: time.Minute})
	for key, want := range map[string]*Limit{"user-17": exact, "user-18": two, "user-1": two, "user-2": one, "user": nil, "x": nil} {
		got := r.Match(name(key))
		if got.Limit != want {
			t.Errorf("%s: %+v, want %+v", key, got.Limit, want)
		}
		if paused := got.Paused == time.Second; paused != (want != nil) {
			t.Errorf("%s is paused: %v", key, paused)
		}
	}
	if got := r.Match(Name{OfFlow, "other", "user-17"}); got != (Rule{}) {
		t.Errorf("another app has %+v", got)
	}
	if got := r.Match(name("user-18")); got.Cooldown != time.Minute {
		t.Errorf("%+v", got)
	}
	r.Set(name("user-1*"), nil)
	if got := r.Match(name("user-18")).Limit; got != one {
		t.Errorf("after a delete: %+v", got)
	}
}

// 100,000 keys of a pattern may have a breaker that looks at 1,000 outcomes, most of them with few calls: a key
// costs memory for the outcomes that it has.
func TestABreakerOfFewCallsIsSmall(t *testing.T) {
	var g Gate
	g.Set(&Limit{Breaker: Breaker{Share: 1, Of: 1000, Within: time.Hour, Open: time.Second, MaxOpen: time.Minute}}, 0)
	for range 10 {
		g.Give(g.Take(0, false), Ended{Made: true, Bad: true}, 0)
	}
	if n := cap(g.breaker.outcomes); n > 20 {
		t.Errorf("there is room for %d outcomes after 10 calls", n)
	}
	for range 990 {
		if by, _ := g.Ask(0, false); by != ByNone {
			t.Fatalf("the call is held by %v after fewer than 1,000 outcomes", by)
		}
		g.Give(g.Take(0, false), Ended{Made: true, Bad: true}, 0)
	}
	if by, _ := g.Ask(0, false); by != ByBreaker {
		t.Error("the breaker is closed after 1,000 bad outcomes")
	}
}

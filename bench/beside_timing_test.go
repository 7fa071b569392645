package bench

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// besideRounds is even: each build is the first of half of them.
const besideRounds = 12

// BenchmarkBeside runs another build, the program XTIMER_BESIDE, beside this one, so a slow minute of
// the machine slows both. Two commits can be told apart by 1 % that way; runs one after the other
// differ by a third. Without XTIMER_BESIDE this build runs beside itself: that is what the
// benchmark cannot tell apart. Both builds have XTIMER_INTERVALS timers every 10 ms, a tenth of them due
// at each ms. Timers that were just made would share a ms by chance, and wake a build
// less often. Each figure is that of this build divided by that of the other, the median of the rounds.
func BenchmarkBeside(b *testing.B) {
	other := cmp.Or(os.Getenv("XTIMER_BESIDE"), binary)
	n := setting("XTIMER_INTERVALS", 60)
	var fires, cpu, heap, late []float64
	for round := range besideRounds {
		sides := []*side{newSide(b, binary), newSide(b, other)}
		this, that := sides[0], sides[1]
		if round%2 == 1 {
			slices.Reverse(sides)
		}
		from := time.Now().Add(2 * time.Second).Truncate(time.Second)
		for _, s := range sides {
			s.schedule(b, n, from)
		}
		time.Sleep(time.Until(from.Add(time.Second)))
		for _, s := range sides {
			s.begin()
		}
		time.Sleep(8 * time.Second)
		for _, s := range sides {
			s.end()
		}
		for _, s := range sides {
			s.p.kill()
		}
		fires = append(fires, this.fires/that.fires)
		cpu = append(cpu, this.cpu/that.cpu)
		heap = append(heap, this.heap/that.heap)
		late = append(late, this.late/that.late)
		b.Logf("round %d: %.1f and %.1f us of processor time, %.0f and %.0f B a fire, p99 %.2f and %.2f ms", round+1, this.cpu, that.cpu, this.heap, that.heap, this.late, that.late)
	}
	b.ReportMetric(median(fires), "x-fires")
	b.ReportMetric(median(cpu), "x-cpu/fire")
	b.ReportMetric(median(heap), "x-alloc/fire")
	b.ReportMetric(median(late), "x-lateness-p99")
}

// side is one of the two builds, with what it calls and its figures of a round.
type side struct {
	p                      *process
	r                      *receiver
	spent                  time.Duration
	fires, cpu, heap, late float64
}

func newSide(b *testing.B, program string) *side {
	s := &side{p: startProgram(b, program), r: startReceiver(b)}
	s.r.counting = true
	return s
}

func (s *side) schedule(b *testing.B, n int, from time.Time) {
	var lines bytes.Buffer
	for i := range n {
		at := from.Add(time.Duration(i%10) * time.Millisecond).UTC().Format("2006-01-02T15:04:05.000Z")
		fmt.Fprintf(&lines, `{"app":"bench","name":"every-%d","schedule":{"every":"10ms","start_at":%q},"callback":{"url":%q}}`+"\n", i, at, s.r.url)
	}
	if _, err := createBatch(s.p.url(""), lines.Bytes()); err != nil {
		b.Fatal(err)
	}
}

func (s *side) begin() {
	s.heap = s.p.metric("go_memstats_alloc_bytes_total")
	s.r.reset()
	s.spent = s.p.cpu()
}

func (s *side) end() {
	s.spent = s.p.cpu() - s.spent
	s.fires = float64(s.r.total())
	s.cpu = float64(s.spent.Microseconds()) / s.fires
	s.late = ms(s.r.lateness(.99)[0])
	s.heap = (s.p.metric("go_memstats_alloc_bytes_total") - s.heap) / s.fires
}

package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The machine is shared: other processes here, and other machines of its host, of
// which only the kernel's count of stolen time tells. A row waits for a moment in
// which the processors can be had, and says what was stolen from it all the same.

func machine() string {
	cpu := runtime.GOARCH
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				cpu = strings.Trim(name, "\t :\n")
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d processors, %s", cpu, runtime.NumCPU(), runtime.GOOS)
}

// awaitQuiet waits for a second in which this process gets 97 % of all processors,
// for half a minute at most.
func awaitQuiet() {
	for range 30 {
		before := ticksOf()
		if spin(time.Second) >= .97 && ticksOf().stolenSince(before) <= .03 {
			return
		}
	}
}

// spin keeps all processors busy and tells what share of them this process got.
func spin(d time.Duration) float64 {
	began, used := time.Now(), processorTime()
	var wg sync.WaitGroup
	for range runtime.NumCPU() {
		wg.Go(func() {
			for time.Since(began) < d {
			}
		})
	}
	wg.Wait()
	return float64(processorTime()-used) / float64(time.Since(began)) / float64(runtime.NumCPU())
}

func processorTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// ticks of all processors since the machine began.
type ticks struct{ wanted, stolen float64 }

// ticksOf reads them; none where there is no /proc.
func ticksOf() (t ticks) {
	b, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(b), "\n")
	const idle, iowait, steal = 4, 5, 8
	for i, field := range strings.Fields(line) {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil || i == idle || i == iowait || i > steal {
			continue
		}
		if t.wanted += n; i == steal {
			t.stolen = n
		}
	}
	return t
}

// stolenSince is the share of the processor time wanted since then that others on
// the host had.
func (t ticks) stolenSince(was ticks) float64 {
	return (t.stolen - was.stolen) / max(t.wanted-was.wanted, 1)
}

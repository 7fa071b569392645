package main

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// tableOf writes the figures as Markdown.
func tableOf(rows []*figures, started time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# xtimer beside its peers\n\n%s, on %s, %s. Written by `make bench-peers` in %s.\n\n",
		started.UTC().Format("2006-01-02 15:04 MST"), machine(), runtime.Version(), time.Since(started).Round(time.Second))
	fmt.Fprintf(&b, "Scheduler, its server, the load and the receiver share these processors: compare the rows with each other, not with other machines.\n"+
		"Handlers make the same HTTP call to the same receiver; the handlers of the rows *no-op* only record the time.\n"+
		"`bench/peers/README.md` has the settings of each. *Stolen* is the processor time that other machines of the host took while\n"+
		"the figures of the row were measured. Each row is the try, of at most three, in which the least time was stolen.\n\n")

	fmt.Fprintf(&b, "| | scheduled/s one by one | in batches | late p50 at %d/s | p99 | early | fires/s, %d at once | stolen |\n|---|--:|--:|--:|--:|--:|--:|--:|\n", rate, burst)
	for _, f := range rows {
		if f.skipped != "" {
			fmt.Fprintf(&b, "| %s | skipped: %s |||||||\n", f.name, f.skipped)
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %.0f %% |\n", f.name, count(f.oneByOne), count(f.batched),
			f.quantile(.5), f.quantile(.99), f.earliest(), f.saturated(), 100*f.stolen)
	}

	b.WriteString("\n| | ")
	for _, n := range waiting {
		fmt.Fprintf(&b, "MB for %d waiting | ", n)
	}
	fmt.Fprintf(&b, "%d × kill -9: acknowledged | lost | repeats | the last came after |\n|---|%s--:|--:|--:|--:|\n", kills, strings.Repeat("--:|", len(waiting)))
	for _, f := range rows {
		if f.kill == nil {
			continue
		}
		fmt.Fprintf(&b, "| %s | ", f.name)
		for _, m := range f.memory {
			fmt.Fprintf(&b, "%.0f", float64(m.bytes)/1e6)
			if m.n < m.asked {
				fmt.Fprintf(&b, " (for %d: adding takes too long)", m.n)
			}
			b.WriteString(" | ")
		}
		k := f.kill
		fmt.Fprintf(&b, "%d | %d | %d | %.1f s |\n", k.acknowledged, k.lost, k.repeats, k.last.Seconds())
	}

	b.WriteString("\nThe memory is of the process and its server, more than with none waiting. kill -9 hits the process that\n" +
		"schedules and calls, not its server. How late, as a plot: `peers-lateness.svg`.\n\nVersions: xtimer " + xtimerVersion())
	for _, v := range versions(rows) {
		b.WriteString(", " + v)
	}
	b.WriteString(".\n")
	return b.String()
}

func (f *figures) quantile(q float64) string {
	if n := len(f.late); n > 0 {
		return ms(f.late[min(int(q*float64(n)), n-1)])
	}
	return "–"
}

// earliest says how many came early, of those that came, and by how much at most.
func (f *figures) earliest() string {
	s := "0"
	if f.early > 0 {
		s = fmt.Sprintf("%d, by up to %s", f.early, ms(-f.late[0]))
	}
	if len(f.late) < f.wanted {
		s += fmt.Sprintf("; %d of %d came at all", len(f.late), f.wanted)
	}
	return s
}

func (f *figures) saturated() string {
	s := count(f.fires)
	if f.fires > 0 && f.fired < burst {
		s += fmt.Sprintf(" (of the first %d)", f.fired)
	}
	return s
}

func count(v float64) string {
	if v == 0 {
		return "–"
	}
	if v >= 1000 {
		v = math.Round(v/100) * 100
	}
	return fmt.Sprintf("%.0f", v)
}

func ms(d time.Duration) string {
	v := float64(d) / 1e6
	switch {
	case math.Abs(v) < 10:
		return fmt.Sprintf("%.2f ms", v)
	case math.Abs(v) < 1000:
		return fmt.Sprintf("%.0f ms", v)
	}
	return fmt.Sprintf("%.1f s", v/1000)
}

// versions of the peers that ran, and of their servers.
func versions(rows []*figures) (vs []string) {
	seen := map[string]bool{}
	info, _ := debug.ReadBuildInfo()
	for _, f := range rows {
		if f.skipped != "" {
			continue
		}
		if f.module != "" && !seen[f.module] && info != nil {
			seen[f.module] = true
			for _, m := range info.Deps {
				if m.Path == f.module {
					vs = append(vs, strings.TrimPrefix(m.Path, "github.com/")+" "+m.Version)
				}
			}
		}
		if f.store != "" && !seen[f.store] {
			seen[f.store] = true
			vs = append(vs, serverVersion(f.store))
		}
	}
	return vs
}

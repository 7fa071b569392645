package main

import (
	"bytes"
	"os"
	"syscall"
	"time"

	"xtimer/cmd/xtimer/span"
)

// clock asks the kernel whether somebody keeps its clock right, and what drives it.
func (r *report) clock() {
	const (
		timeError = 5    // TIME_ERROR: not synchronised
		staUnsync = 0x40 // STA_UNSYNC
	)
	var t syscall.Timex
	state, err := syscall.Adjtimex(&t)
	switch {
	case err != nil:
		r.line("clock", "synchronised", "unknown: %v", err)
	case state == timeError || t.Status&staUnsync != 0:
		r.line("clock", "synchronised", "no")
		r.worthf("no service synchronises the clock (chrony, systemd-timesyncd): dues are exact to the millisecond by this machine's clock, even if that clock is wrong")
	default:
		r.line("clock", "synchronised", "yes, within %s at most", span.Millis(time.Duration(t.Maxerror)*time.Microsecond))
	}

	b, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	if err != nil {
		return
	}
	source := string(bytes.TrimSpace(b))
	r.line("clock", "source", "%s", source)
	switch source {
	case "hpet", "acpi_pm", "jiffies", "refined-jiffies":
		r.worthf("the clock source is %s, which is slow or coarse to read; tsc or a paravirtual clock is better", source)
	}
}

package main

import (
	"bytes"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"xtimer/cmd/xtimer/settings"
	"xtimer/cmd/xtimer/span"
)

// kernelClock asks the kernel whether somebody keeps its clock right, and within what.
func kernelClock() (synchronised bool, within time.Duration, err error) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return false, 0, err
	}
	return state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0, time.Duration(t.Maxerror) * time.Microsecond, nil
}

// clockSynchronised reports whether somebody keeps the kernel's clock right.
func clockSynchronised() (bool, error) {
	ok, _, err := kernelClock()
	return ok, err
}

// sinceBoot is how long ago the machine booted, suspended or not.
func sinceBoot() (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return time.Duration(t.Nano()), err
}

// clock asks the kernel whether somebody keeps its clock right, and what drives it.
func (r *report) clock() {
	ok, within, err := kernelClock()
	switch {
	case err != nil:
		r.line("clock", "synchronised", "unknown: %v", err)
	case !ok:
		r.line("clock", "synchronised", "no")
		r.worthf("no service synchronises the clock (chrony, systemd-timesyncd): dues are exact to the millisecond by this machine's clock, even if that clock is wrong; "+
			"a start waits up to %v (--clock-wait) for the clock to be synchronised, if the machine has booted since the last finished due or the clock is a minute behind that due", settings.Default().ClockWait)
	default:
		r.line("clock", "synchronised", "yes, within %s at most", span.Millis(within))
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

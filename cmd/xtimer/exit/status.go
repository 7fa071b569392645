package exit

import (
	"fmt"
	"strings"
)

// The exit statuses: one for each kind of failure.
const (
	StatusFailed      = 1
	StatusUsage       = 2
	StatusNotFound    = 3
	StatusPartly      = 4
	StatusConflict    = 5
	StatusRefused     = 6
	StatusDenied      = 7
	StatusUnavailable = 8
	StatusExceeded    = 9
	StatusDisk        = 70  // wal/disk ends the process with it
	StatusTakenOver   = 75  // serve --cluster
	StatusInterrupted = 130 // as a shell reports a process that SIGINT ended
)

// Statuses are all exit statuses with their meanings.
var Statuses = []struct {
	Status  int
	Meaning string
}{
	{0, "success"},
	{StatusFailed, "a check failed (timer diff found a difference, verify a fault), or another error"},
	{StatusUsage, "the command line or a file is invalid; nothing was done"},
	{StatusNotFound, "the timer, the task or the context does not exist"},
	{StatusPartly, "some of several operations succeeded and some failed"},
	{StatusConflict, "the object exists with another definition, or was changed in the meantime"},
	{StatusRefused, "the server refused the request as invalid"},
	{StatusDenied, "the token is missing or unknown, or its role does not allow the request"},
	{StatusUnavailable, "no server responds, or the server cannot serve the request now"},
	{StatusExceeded, "the quota of the app is used up: delete timers, or wait until some end"},
	{StatusDisk, "serve: the disk failed, or the data directory was moved; exited to protect the data"},
	{StatusTakenOver, "serve --cluster: other nodes took over; start the server again"},
	{StatusInterrupted, "interrupted by Ctrl-C"},
}

// Help refers the help of a command to the table of exit statuses.
const Help = `"xtimer help exit-codes" lists the exit statuses.`

// Topic is the text of "xtimer help exit-codes".
func Topic() string {
	var b strings.Builder
	b.WriteString("Every command ends with one of these exit statuses:\n\n")
	for _, s := range Statuses {
		fmt.Fprintf(&b, "  %-4d %s\n", s.Status, s.Meaning)
	}
	b.WriteString(`
If all of several operations failed, the status is that of the first failure. A
server that receives SIGTERM or Ctrl-C lets the calls in flight finish and exits
with 0; after a second signal it exits at once with 143 or 130.`)
	return b.String()
}

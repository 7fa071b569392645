package main

import (
	"fmt"
	"time"
)

// task is one thing to fire: its number and when it is due, Unix ms.
type task struct {
	Number int   `json:"n"`
	Due    int64 `json:"d"`
}

// peer is a scheduler under measurement, open and running. It calls fire, from
// any goroutine, for each task when it thinks that its time has come.
type peer struct {
	add     func(task) error
	addMany func([]task) error // nil: it has no batches
	writers int                // goroutines that add at a time
}

// setup is how a peer is run: one row of the table.
type setup struct {
	name string
	kind string // names its opener
	best bool   // set for speed, or left at its defaults
	noop bool   // its handler makes no call, it only notes the time
	// module is the package whose version is shown.
	module string
	// recovers is how long after a kill the last may come.
	recovers time.Duration
	// store names the server behind it; "" for none.
	store string
}

// setups are the rows, in order. A handler without HTTP is measured beside the
// one that calls: it shows what of the figure is the peer's own.
var setups = []setup{
	{name: "xtimer", kind: "xtimer", recovers: 25 * time.Second},
	{name: "asynq, default", kind: "asynq", module: "github.com/hibiken/asynq", store: "redis"},
	{name: "asynq, best", kind: "asynq", best: true, recovers: 95 * time.Second, module: "github.com/hibiken/asynq", store: "redis"},
	{name: "asynq, best, no-op", kind: "asynq", best: true, noop: true, module: "github.com/hibiken/asynq", store: "redis"},
	{name: "River, default", kind: "river", module: "github.com/riverqueue/river", store: "postgres"},
	{name: "River, best", kind: "river", best: true, recovers: 45 * time.Second, module: "github.com/riverqueue/river", store: "postgres"},
	{name: "River, best, no-op", kind: "river", best: true, noop: true, module: "github.com/riverqueue/river", store: "postgres"},
	{name: "gocron", kind: "gocron", recovers: 4 * time.Second, module: "github.com/go-co-op/gocron/v2"},
	{name: "robfig/cron", kind: "robfig", recovers: 4 * time.Second, module: "github.com/robfig/cron/v3"},
	{name: "timingwheel", kind: "timingwheel", recovers: 4 * time.Second, module: "github.com/RussellLuo/timingwheel"},
	{name: "timingwheel, no-op", kind: "timingwheel", noop: true, module: "github.com/RussellLuo/timingwheel"},
	{name: "time.AfterFunc", kind: "afterfunc", recovers: 4 * time.Second},
	{name: "time.AfterFunc, no-op", kind: "afterfunc", noop: true},
}

// openPeer opens it in this process; store is the address of its server.
func openPeer(s setup, store string, fire func(task)) (*peer, error) {
	switch s.kind {
	case "asynq":
		return openAsynq(s.best, store, fire)
	case "river":
		return openRiver(s.best, store, fire)
	case "gocron":
		return openGocron(fire)
	case "robfig":
		return openRobfig(fire)
	case "timingwheel":
		return openTimingwheel(fire)
	case "afterfunc":
		return openAfterFunc(fire)
	}
	return nil, fmt.Errorf("there is no peer %q", s.kind)
}

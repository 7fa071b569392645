package resident

import (
	"sync/atomic"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/wheel"
)

// Config is what a Memory works with.
type Config struct {
	Journal engine.Journal
	Now     func() time.Time // the wall clock
	Queue   *fair.Queue[*Task]
	Wheel   *wheel.Wheel[Item]
	// MaxWaiting is how many unfinished tasks are in memory before those of crowded lanes
	// wait in the cold tier.
	MaxWaiting int
	Bodies     int64 // how many bytes the headers and bodies of calls take at most
	// MemoryFull reports whether so many bytes more are too many.
	MemoryFull func(more int64) bool
	// DiskCritical reports whether history of successes may not be written.
	DiskCritical func() bool
	// Ended hears of each task that has ended. It is called with the lock of a shard.
	Ended func(*engine.Task)
}

// Memory is the timers and tasks in memory, with what decides about them.
type Memory struct {
	cfg  Config
	made time.Time

	Shards  [engine.Shards]Shard
	Queue   *fair.Queue[*Task]
	Wheel   *wheel.Wheel[Item]
	Pins    Pins
	Changes Changes
	Bodies  Bodies
	Lanes   *Lanes
	Late    LateTimers
	// Settled wakes those who wait for a settle, a decision or the end of a first byte.
	Settled Signal

	// Instants in Unix ms. Horizon: dues before it are put into the wheel by whoever makes
	// them; only the migrator raises it.
	Horizon   atomic.Int64
	Stepped   atomic.Int64 // when the clock last stepped forward, by the new clock
	UpTo      atomic.Int64 // the latest instant at which an attempt began or a change was made
	StartedAt int64
}

// New makes an empty one.
func New(cfg Config) *Memory {
	m := &Memory{cfg: cfg, Queue: cfg.Queue, Wheel: cfg.Wheel, Lanes: NewLanes(cfg.MaxWaiting), made: time.Now()}
	for i := range m.Shards {
		sh := &m.Shards[i]
		sh.Bodies = &m.Bodies
		sh.Timers = map[engine.TimerID]*Timer{}
		sh.Changing, sh.Decided, sh.EvictedAt = map[engine.TimerID]chan struct{}{}, map[engine.TimerID]int64{}, map[engine.Key]int64{}
	}
	m.Bodies.Limit, m.Bodies.Shares = cfg.Bodies, map[engine.Lane]*Share{}
	m.Changes.Versions = map[engine.TimerID]ChangeNote{}
	m.Late.More = make(chan struct{}, 1)
	return m
}

func (m *Memory) now() int64 { return m.cfg.Now().UnixMilli() }

const minute = int64(60_000)

package simulator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"xtimer/bench/checker"
	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/tier/local"
	"xtimer/tier/memory"
	"xtimer/wal"
)

const (
	// stallAfter is how long the cold tier waits for its disk.
	stallAfter = 2 * time.Second
	// healing is how long after the last fault all that is owed has to be over:
	// the longest waits of a script's retries, calls and faults, and some more.
	healing = 90 * time.Second
)

// machine is what the service runs on.
type machine struct {
	script *Script
	begin  time.Time // in the bubble
	asking sync.WaitGroup
	did    []string // steps, and when; the driver's own
	lives  sync.WaitGroup

	mu      sync.Mutex // guards all below; never held while a tier is called
	offset  time.Duration
	trouble trouble
	life    *life // nil while the machine is down
	born    int
	ended   []end  // of lives
	looks   []look // when each start looked what was late
	steps   []clockStep
	// wasSet: the clock of one of several nodes was set. A call that was on its way then tells
	// that it began before its due.
	wasSet bool
	// goneBack: the cold tier of several nodes went back, and with it the rows that say that calls
	// begin of which there may be one at most.
	goneBack bool
	calls    []*call
	refused  []engine.Key          // attempts that reached nobody
	order    int                   // of calls and answers so far
	asked    map[string][]*request // by the name of the timer
	last     map[string]chan struct{}
	calm     bool
	calmAt   time.Duration    // since when nothing holds calls; not guarded
	clocks   bool             // there are several
	stood    time.Duration    // the most that a call waited for its note
	others   []checker.Broken // faults beside those above
	slow     time.Duration    // when the disk last kept somebody waiting, since the run began
	broken   []string         // what must not have happened
	log      strings.Builder

	disk *vfs.MemFS // of the next life
	left *remains   // what is durable in the end
}

// life is one process, from its start to its end.
type life struct {
	n    int
	disk *vfs.MemFS
	e    *scheduler.Scheduler
	cold *local.Store
	wal  *wal.Log
	stop context.CancelFunc
	node *node // nil: there is one machine
	// marked are the watermarks that it has stored, settled is how often; guarded by fleet.writing.
	marked  [engine.Shards]int64
	settled int
	over    bool          // nothing of it reaches anybody any more; guarded by machine.mu
	gone    chan struct{} // closed when it is over
	ended   chan error    // Run has returned
	up      bool          // it has started; guarded by machine.mu
	look    look          // guarded by machine.mu

	sweeping chan struct{} // holds who sweeps
}

// end is how a life ended.
type end struct {
	at      time.Duration // since the run began
	wall    int64
	crashed bool // it was killed: what its disk had not synced may be lost
	failed  bool // it ended with an error, and did not wait for its calls under way
	node    int  // that the life was of
	life    int
	upWall  int64         // when the next looked what was late; 0: never
	up      time.Duration // when that was, since the run began
}

// look is when a start looked what was late.
type look struct {
	at   time.Duration // since the run began
	wall int64         // Unix ms
}

// tell writes a line of the trace. mu is held.
func (m *machine) tell(format string, args ...any) {
	fmt.Fprintf(&m.log, "%12v %s  ", m.since(), stamp(m.wall().UnixMilli()))
	fmt.Fprintf(&m.log, format, args...)
	m.log.WriteByte('\n')
}

func (m *machine) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tell(format, args...)
}

// wrong notes something that must not happen.
func (m *machine) wrong(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = append(m.broken, fmt.Sprintf(format, args...))
	m.tell("WRONG: "+format, args...)
}

// Outcome of a run.
type Outcome struct {
	Broken []string // promises that were
	Trace  string
	Calls  int
	Lives  int
	Steps  []string // and when each was done
	Final  []string // what became of each due, in order
}

// Simulate runs a script in a bubble of its own.
func Simulate(t *testing.T, s *Script) (out Outcome) {
	synctest.Test(t, func(*testing.T) {
		time.Sleep(time.Until(s.Epoch))
		m := &machine{
			script: s, begin: time.Now(), disk: vfs.NewCrashableMem(),
			asked: map[string][]*request{}, last: map[string]chan struct{}{},
		}
		m.run()
		out = m.judge()
	})
	return out
}

// run does the steps, brings the machine up again when it went down, and heals it.
func (m *machine) run() {
	steps := m.script.Steps
	up := time.Duration(0) // when to start it
	past := make(chan time.Time)
	close(past)
	for {
		m.mu.Lock()
		l := m.life
		m.mu.Unlock()
		next := m.script.Calm
		if len(steps) > 0 {
			next = min(next, steps[0].At)
		}
		var gone <-chan struct{}
		var died <-chan error
		if l == nil {
			next = min(next, up)
		} else {
			gone, died = l.gone, l.ended
		}
		arrived := (<-chan time.Time)(past) // not a timer of 0: see engine.sleep
		if wait := next - m.since(); wait > 0 {
			arrived = time.After(wait)
		}
		select {
		case <-gone:
			up = m.since() + m.buried(l)
			continue
		case err := <-died:
			m.stopped(l, err)
			up = m.since() + m.buried(l)
			continue
		case <-arrived:
		}
		switch {
		case l == nil && m.since() >= up:
			if !m.start() {
				up = m.since() + 2*time.Second
			}
		case len(steps) > 0 && m.since() >= steps[0].At:
			m.do(steps[0])
			steps = steps[1:]
		case m.since() >= m.script.Calm:
			m.heal()
			return
		}
	}
}

// heal ends all trouble and sees that the machine gets over it.
func (m *machine) heal() {
	m.mu.Lock()
	m.trouble, m.calm = trouble{}, true
	m.tell("calm")
	l := m.life
	m.mu.Unlock()
	if l != nil {
		select { // one that is stopping or dying has to be away first
		case <-l.gone:
			m.buried(l)
			l = nil
		case err := <-l.ended:
			m.stopped(l, err)
			m.buried(l)
			l = nil
		case <-time.After(time.Minute):
		}
	}
	if l == nil && !m.start() {
		m.wrong("it does not start")
		return
	}
	m.liftLimits()
	m.calmAt = m.since()
	time.Sleep(healing)
	m.asking.Wait()
	m.mu.Lock()
	l = m.life
	m.mu.Unlock()
	m.holdJournal(l)
	m.note("last stop")
	l.stop()
	m.stopped(l, <-l.ended)
	m.buried(l)
	m.lives.Wait()
	m.left = m.look()
}

// holdJournal holds what the journal has against what was called of late: after a settle
// it needs no more, whatever the clock did.
func (m *machine) holdJournal(l *life) {
	n, lately := l.wal.Len(), int64(0)
	m.mu.Lock()
	for _, c := range m.calls {
		if c.ended == 0 || c.ended > m.since()-healing/3 {
			lately++
		}
	}
	m.mu.Unlock()
	if n > 4*lately+2000 { // it may keep a thousand of what was called before the clock was set back
		m.wrong("the journal has %d records, with %d calls of late", n, lately)
	}
}

// start begins a life over the disk as it is.
func (m *machine) start() bool {
	l := &life{disk: m.disk, gone: make(chan struct{}), ended: make(chan error, 1), sweeping: make(chan struct{}, 1)}
	m.mu.Lock()
	m.born++
	l.n = m.born
	m.life = l
	m.tell("start %d", l.n)
	away := m.trouble.coldAway || m.trouble.coldMute // it may come back at the same instant
	m.mu.Unlock()
	cache := pebble.NewCache(4 << 20)
	set := m.script.Settings
	quiet := slog.New(slog.DiscardHandler)
	fs := m.diskOf(l)
	exit := func(int) { m.wrong("a life has ended itself") }
	l.cold = local.New(local.Config{
		Dir: "/data/cold", FS: fs, Cache: cache, MemTableBytes: set.MemTable, StallAfter: stallAfter, Exit: exit, Log: quiet,
	})
	l.wal = wal.New(wal.Config{Dir: "/data/journal", FS: fs, Cache: cache, MemTable: set.MemTable, Spacing: set.Spacing, Logger: quiet, Exit: exit})
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.e = scheduler.New(scheduler.Config{
		Cold: &cold{l.cold, m, l}, Warm: &warm{memory.NewWarm(), m}, Journal: l.wal, Caller: &receiver{m, l},
		Now: m.now, Window: set.Window, MaxCalls: set.Workers, MaxWaiting: set.Waiting, MaxCallsPerTarget: set.PerTarget, Bodies: set.Bodies, Log: quiet, Metrics: metrics.NewSet(),
	})
	if err := l.e.Open(ctx); err != nil {
		stop()
		cache.Unref()
		m.mu.Lock()
		excused := l.over || away || m.trouble.coldAway || m.trouble.coldMute || m.since()-m.slow < 10*time.Second
		m.tell("it cannot open: %v", err)
		if !l.over {
			l.over = true
			close(l.gone)
		}
		m.life = nil
		m.mu.Unlock()
		if !excused {
			m.wrong("it cannot open: %v", err)
		}
		return false
	}
	if m.script.Crowd.to > 0 {
		m.lives.Go(func() { m.holdMemory(l) })
	}
	m.lives.Go(func() {
		err := l.e.Run(ctx)
		cache.Unref()
		l.ended <- err
	})
	// All that needs no time has been done when the first µs is over, however the
	// goroutines ran; without it a start took 0 or 1 µs, and two runs were not alike.
	pause := time.Microsecond
	for time.Sleep(pause); l.e.Ready() != nil; time.Sleep(pause) {
		pause = min(2*pause, time.Millisecond)
		m.mu.Lock()
		over := l.over
		m.mu.Unlock()
		if over || m.since() > m.script.Calm+time.Hour {
			return true
		}
	}
	m.mu.Lock()
	l.up = true
	if n := len(m.ended); n > 0 && m.ended[n-1].upWall == 0 {
		m.ended[n-1].upWall, m.ended[n-1].up = l.look.wall, l.look.at
	}
	m.tell("up")
	m.mu.Unlock()
	return true
}

// die ends a life as kill -9 and a loss of power do: of what is not synced, kept
// percent stay. It may be called by any goroutine, many times.
func (m *machine) die(l *life, kept int, seed uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.over {
		return
	}
	l.over = true
	m.tell("life %d dies, %d %% of what is not synced is kept", l.n, kept)
	m.disk = l.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: rand.New(rand.NewPCG(seed, 2))})
	m.ended = append(m.ended, end{at: m.since(), wall: m.wall().UnixMilli(), crashed: true, life: l.n})
	close(l.gone)
	l.stop()
}

// stopped notes that a life ended by itself.
func (m *machine) stopped(l *life, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.over {
		return
	}
	l.over = true
	m.tell("life %d has stopped: %v", l.n, err)
	m.ended = append(m.ended, end{at: m.since(), wall: m.wall().UnixMilli(), life: l.n})
	close(l.gone)
	away := errors.Is(err, engine.ErrUnavailable) && (m.trouble.coldAway || m.trouble.coldMute || m.since()-m.slow < 10*time.Second)
	cut := err != nil && strings.Contains(err.Error(), "leaked iterators") // a backup, by the stop
	if err != nil && !away && !cut {
		m.broken = append(m.broken, "it ended with an error: "+err.Error())
	}
}

// buried makes room for the next life, and tells after how long it may come.
func (m *machine) buried(l *life) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life == l {
		m.life = nil
	}
	return m.trouble.crash.For
}

package simulator

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"xtimer/engine"
	"xtimer/engine/flow"
)

// Kind is what a step does.
type Kind uint8

// Requests, then faults.
const (
	Create Kind = iota
	Put
	Patch
	Delete
	Disable
	Enable
	Run
	Retry
	Backup
	Sweep
	SetLimit    // of a flow key, or of a pattern
	PauseFlow   // likewise, or of the app
	ResumeFlow  // likewise
	RemoveLimit // likewise; a pause goes with it

	Crash   // the process dies; of what was not synced Kept percent stay
	CrashAt // the same, at the Nth operation of the disk from here on
	Stop    // SIGTERM
	Clock   // the wall clock is set By
	Slow    // each sync takes By, for For
	Stall   // the next sync takes By
	WarmAway
	WarmLoss // some entries vanish from the warm tier
	ColdAway // the cold tier refuses, for For
	ColdMute // the cold tier does what it is told, and says that it did not
	kinds
)

var kindNames = [kinds]string{
	"create", "put", "patch", "delete", "disable", "enable", "run", "retry", "backup", "sweep",
	"limit", "pause", "resume", "remove the limit",
	"crash", "crash at", "stop", "clock", "slow disk", "stall", "warm away", "warm loss", "cold away", "cold mute",
}

func (k Kind) String() string { return kindNames[k] }

// Step is one thing that happens. Only what its kind needs is set.
type Step struct {
	At         time.Duration // since the run began
	Kind       Kind
	Name       string // of the timer
	Definition engine.Definition
	Until      time.Duration // of a disable; 0: for good
	CatchUp    engine.CatchUp
	Flow       string // the key or the pattern; "": the app
	Limit      flow.Limit
	Kept       int
	Nth        int
	By, For    time.Duration
	Draw       uint64 // what else is to be chosen
}

func (s Step) String() string {
	text := fmt.Sprintf("%-9s %s", s.Kind, s.Name)
	switch s.Kind {
	case Create, Put, Patch:
		d := s.Definition
		text += fmt.Sprintf(" %s %s %s", schedule(d.Schedule), d.Overlap, d.Delivery)
		text += fmt.Sprintf(" misfire %s %v url %s", d.Misfire.Policy, d.Misfire.Window, d.Callback.URL)
	case Disable:
		text += fmt.Sprintf(" until %v", s.Until)
	case Enable:
		text += fmt.Sprintf(" catch up %d", s.CatchUp)
	case SetLimit:
		text += fmt.Sprintf(" %s %+v", s.Flow, s.Limit)
	case PauseFlow:
		text += fmt.Sprintf(" %q until %v", s.Flow, s.Until)
	case ResumeFlow, RemoveLimit:
		text += fmt.Sprintf(" %q", s.Flow)
	case Crash:
		text += fmt.Sprintf(" %d %% of the unsynced kept, down %v", s.Kept, s.For)
	case CrashAt:
		text += fmt.Sprintf(" operation %d, %d %% of the unsynced kept, down %v", s.Nth, s.Kept, s.For)
	case Clock, Slow, Stall:
		text += fmt.Sprintf(" %v for %v", s.By, s.For)
	case Stop, WarmAway, ColdAway, ColdMute:
		text += fmt.Sprintf(" %v", s.For)
	}
	return text
}

func schedule(s engine.Schedule) string {
	text := ""
	switch {
	case s.Cron != "":
		text = fmt.Sprintf("cron %q %s", s.Cron, s.TimeZone)
	case s.Every != 0:
		text = fmt.Sprintf("every %v", s.Every)
	case s.HasDelay:
		text = fmt.Sprintf("delay %v", s.Delay)
	default:
		text = "at " + stamp(s.At)
	}
	if s.StartAt != 0 {
		text += " from " + stamp(s.StartAt)
	}
	if s.EndAt != 0 {
		text += " to " + stamp(s.EndAt)
	}
	if s.MaxRuns != 0 {
		text += fmt.Sprintf(" %d times", s.MaxRuns)
	}
	return text
}

// Script is what happens in a run.
type Script struct {
	Seed   uint64
	Epoch  time.Time     // when it begins
	Calm   time.Duration // when the faults are over
	Steps  []Step
	Honest bool          // the receiver takes everything at once
	Pace   time.Duration // how long a sync takes on a good day
	Crowd  crowd
	// Settings that must not change what comes of it.
	Settings Settings
}

// Settings of the service.
type Settings struct {
	Workers  int
	Window   time.Duration
	Spacing  time.Duration
	MemTable uint64
	Waiting  int // tasks that may wait in memory
	// PerTarget are the calls that may be in flight to one target, and Bodies the bytes of
	// headers and bodies in memory; 0: the default.
	PerTarget int
	Bodies    int64
}

func (s Settings) String() string {
	return fmt.Sprintf("workers %d, window %v, spacing %v, memtable %d, waiting %d, per target %d, bodies %d",
		s.Workers, s.Window, s.Spacing, s.MemTable, s.Waiting, s.PerTarget, s.Bodies)
}

// epochs are when runs begin: before a full hour; before the hour that comes
// twice and the one that does not come in Berlin; at the end of a year.
var epochs = []time.Time{
	time.Date(2026, 11, 20, 16, 58, 30, 0, time.UTC),
	time.Date(2026, 10, 25, 0, 57, 0, 0, time.UTC),
	time.Date(2026, 3, 29, 0, 57, 0, 0, time.UTC),
	time.Date(2027, 12, 31, 23, 57, 0, 0, time.UTC),
}

// draw is a source of choices.
type draw struct{ *rand.Rand }

func (d draw) chance(percent int) bool { return d.IntN(100) < percent }

// upTo is a duration in [0, most), of whole ms.
func (d draw) upTo(most time.Duration) time.Duration {
	return time.Duration(d.Int64N(max(most.Milliseconds(), 1))) * time.Millisecond
}

func oneOf[T any](d draw, choices ...T) T { return choices[d.IntN(len(choices))] }

// NewScript draws a script.
func NewScript(seed uint64) *Script {
	d := draw{rand.New(rand.NewPCG(seed, 1))}
	s := &Script{
		Seed: seed, Epoch: oneOf(d, epochs...), Calm: 2*time.Minute + d.upTo(4*time.Minute),
		Settings: Settings{
			Workers: oneOf(d, 2, 8, 64, 1024), Window: oneOf(d, 2*time.Minute, 10*time.Minute, time.Hour),
			Spacing: oneOf(d, -1, time.Millisecond, 10*time.Millisecond, 40*time.Millisecond), MemTable: oneOf[uint64](d, 256<<10, 1<<20),
			Waiting: []int{4, 40, 1_000_000}[seed%3], // not drawn: a seed stays what it was
		},
	}
	s.Pace = oneOf(d, 0, 300*time.Microsecond, 2*time.Millisecond, 8*time.Millisecond)
	w := writer{draw: d, Script: s}
	for range 6 + d.IntN(14) {
		w.life(fmt.Sprintf("t%d", len(w.names)))
	}
	w.faults()
	w.crowd()
	w.flows()
	w.crashesAfterSteps()
	slices.SortStableFunc(s.Steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
	return s
}

// writer writes a script.
type writer struct {
	draw
	*Script
	names []string
}

func (w *writer) add(s Step) {
	s.Draw = w.Uint64()
	w.Steps = append(w.Steps, s)
}

// instant is when something happens: anywhere, or where dues are, at a full second
// or minute, or so shortly before one that a commit takes until then.
func (w *writer) instant(from time.Duration) time.Duration {
	at := from + w.upTo(w.Calm-from)
	switch w.IntN(5) {
	case 0:
		at = at.Truncate(time.Second)
	case 2:
		at = at.Truncate(time.Second) + time.Second - w.upTo(6*time.Millisecond)
	case 1:
		at = at.Truncate(time.Minute) + time.Duration(30-w.Epoch.Second())*time.Second
	}
	return max(at, from)
}

// life is what is asked of one timer.
func (w *writer) life(name string) {
	w.names = append(w.names, name)
	at := w.instant(0) / 3
	w.add(Step{At: at, Kind: oneOf(w.draw, Create, Create, Put), Name: name, Definition: w.definition(name, at)})
	for range w.IntN(7) {
		at = w.instant(at)
		st := Step{At: at, Kind: oneOf(w.draw, Put, Patch, Patch, Disable, Disable, Enable, Enable, Run, Run, Retry, Delete, Create), Name: name}
		switch st.Kind {
		case Create, Put, Patch:
			st.Definition = w.definition(name, at)
		case Disable:
			if w.chance(50) {
				st.Until = time.Second + w.upTo(time.Minute)
			}
		case Enable:
			st.CatchUp = oneOf(w.draw, engine.CatchUpNone, engine.CatchUpLatest, engine.CatchUpAll)
		case Delete:
			if w.chance(50) {
				st.Kind = Run
			}
		}
		w.add(st)
	}
}

// definition of a timer that is asked for at an instant.
func (w *writer) definition(name string, at time.Duration) engine.Definition {
	d := engine.NewDefinition()
	d.App, d.Name = oneOf(w.draw, "a", "b"), name
	d.App = "app"
	d.Callback.URL = fmt.Sprintf("http://127.0.0.1:%d/%s/%d", 1+w.IntN(3), name, w.IntN(1000))
	d.Callback.Timeout = 2 * time.Second
	d.Retry = engine.Retry{
		MaxAttempts: 1 + w.IntN(4), Backoff: 200*time.Millisecond + w.upTo(4*time.Second), Multiplier: oneOf(w.draw, 1, 2.0),
		MaxBackoff: 8 * time.Second, MaxAge: time.Hour,
	}
	d.Misfire = engine.Misfire{
		Policy: oneOf(w.draw, engine.MisfireLatest, engine.MisfireSkip, engine.MisfireAll),
		Window: oneOf(w.draw, 30*time.Second, time.Hour, 24*time.Hour),
	}
	d.Overlap = oneOf(w.draw, engine.OverlapAllow, engine.OverlapAllow, engine.OverlapSkip, engine.OverlapQueue)
	d.Delivery = oneOf(w.draw, engine.AtLeastOnce, engine.AtLeastOnce, engine.AtMostOnce)
	d.Priority = w.IntN(10)
	d.StaleAfter = oneOf(w.draw, 0, 0, 0, 500*time.Millisecond, 5*time.Second, time.Minute)
	d.Schedule = w.schedule(at)
	return d
}

func (w *writer) schedule(at time.Duration) engine.Schedule {
	now := w.Epoch.Add(at)
	var s engine.Schedule
	switch w.IntN(5) {
	case 0:
		s.Every = oneOf(w.draw, 250*time.Millisecond, time.Second, 1700*time.Millisecond, 5*time.Second, 21*time.Second, 70*time.Second)
	case 1:
		s.Cron = oneOf(w.draw, "* * * * *", "*/2 * * * *", "*/5 * * * * *", "15,45 * * * * *", "0 2 * * *", "30 2 * * *", "0 0 1 1 *", "0 17 * * *", "0 * * * *")
		s.TimeZone = oneOf(w.draw, "", "Europe/Berlin")
	case 2:
		s.Delay, s.HasDelay = oneOf(w.draw, 0, w.upTo(time.Second), w.upTo(3*time.Minute)), true
	default:
		due := now.Add(oneOf(w.draw, -w.upTo(20*time.Second), 0, w.upTo(time.Second), w.upTo(3*time.Minute), w.upTo(2*time.Hour)))
		if w.chance(30) {
			due = due.Truncate(time.Minute)
		}
		s.At = due.UnixMilli()
		return s
	}
	if s.HasDelay {
		return s
	}
	if w.chance(15) {
		s.StartAt = now.Add(w.upTo(time.Minute)).UnixMilli()
	}
	if w.chance(15) {
		s.EndAt = now.Add(time.Minute + w.upTo(3*time.Minute)).UnixMilli()
	}
	if w.chance(20) {
		s.MaxRuns = 1 + w.Int64N(20)
	}
	return s
}

// crashesAfterSteps are crashes soon after steps of the clock: what a step made late is
// decided then, and the watermark has not passed it.
func (w *writer) crashesAfterSteps() {
	for _, s := range w.Steps {
		if s.Kind == Clock && w.chance(50) {
			w.add(Step{
				At: s.At + w.upTo(oneOf(w.draw, 500*time.Millisecond, 5*time.Second)), Kind: oneOf(w.draw, Crash, CrashAt), Kept: oneOf(w.draw, 0, 30, 70, 100),
				Nth: w.IntN(20), For: oneOf(w.draw, 0, w.upTo(time.Second), w.upTo(40*time.Second)),
			})
		}
	}
}

// faults of a run: a few crashes, and some of the rest.
func (w *writer) faults() {
	for range 1 + w.IntN(4) {
		st := Step{
			At: w.instant(time.Second), Kind: oneOf(w.draw, Crash, Crash, CrashAt, CrashAt, Stop), Kept: oneOf(w.draw, 0, 30, 70, 100),
			Nth: w.IntN(200), For: oneOf(w.draw, 0, w.upTo(time.Second), w.upTo(5*time.Second), w.upTo(40*time.Second)),
		}
		if st.Kind == CrashAt && w.chance(50) {
			st.Nth = w.IntN(20)
		}
		w.add(st)
	}
	for range w.IntN(6) {
		st := Step{At: w.instant(0), Kind: Slow + Kind(w.IntN(int(kinds-Slow))), For: time.Second + w.upTo(20*time.Second)}
		switch st.Kind {
		case Slow:
			st.By = time.Millisecond + w.upTo(200*time.Millisecond)
		case Stall:
			st.By = time.Second + w.upTo(3*time.Second)
		}
		w.add(st)
	}
	if w.chance(30) {
		for range 1 + w.IntN(2) {
			by := oneOf(w.draw, w.upTo(300*time.Millisecond), w.upTo(20*time.Second), w.upTo(3*time.Minute), w.upTo(2*time.Hour))
			if w.chance(50) {
				by = -by
			}
			w.add(Step{At: w.instant(0), Kind: Clock, By: by})
		}
	}
	for range w.IntN(3) {
		w.add(Step{At: w.instant(0), Kind: oneOf(w.draw, Backup, Sweep)})
	}
}

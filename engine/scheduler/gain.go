package scheduler

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	vm "github.com/VictoriaMetrics/metrics"

	"xtimer/engine"
	"xtimer/engine/allot"
	"xtimer/engine/cluster"
	"xtimer/engine/fair"
	"xtimer/engine/process"
	"xtimer/engine/resident"
)

// A node among several begins without shards, and gains them while it fires: at first those
// that its former life held, later free ones, and those of lives that are over.
//
//	the life      noted       the shards, with their fences; the migrator is woken
//	the migrator  found       fence, watermark and the newest id, read after the take: the former owner
//	                          writes no more
//	              decided     what is due in (W, now], by a recovery of these shards alone, as at any start,
//	                          and settled with W = now; the first gain has the journal of the former life,
//	                          each has the mirrors of the lives that did not give their shards
//	              busy        the rows of tasks under way come into memory before anything fires
//	              ahead       the migrator has loaded and resumed beyond now, which it may not have since an outage
//	                          began. Refill reads the rows up to there, and so all that are owed now
//	              loaded      what is due in (now, Loaded) comes into the wheel
//	              distrusted  the minutes of the warm tier from Loaded on, until the shards are filled anew
//	              owned       the shards are this process's
//	              known       the lanes know which rows wait; until then the dues of a queue fall behind, and its rows wait
//	              rows        what is owed and may be tried before resumed comes into memory
//
// One rule makes that right beside all that runs: until they are owned, nobody but the gain
// looks at the shards, and once they are owned, they stand as all others do. The migrator
// itself gains, between two of its loads, so no horizon moves between "loaded" and "owned":
// what is due before Loaded is in the wheel, and what is due later is read with the dues of
// the other shards. Not owned means: refill, fill, load and audit read nothing of the
// shards, no change of a timer in them is taken and no create is made there, and no settle
// moves their watermarks, so a task that has begun and ended meanwhile waits in memory and
// in the journal.
//
// A gain that fails is tried again from the step that failed, and the other shards go on
// meanwhile. What was decided is not decided again: some of it may be in a call by then.

// gains are what the life has gained and the migrator has not.
type gains struct {
	mu   sync.Mutex
	list []cluster.Gained
}

// add notes shards, and does not block.
func (g *gains) add(list []cluster.Gained) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = append(g.list, list...)
}

// take returns what was noted since, nil for nothing.
func (g *gains) take() *gaining {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.list) == 0 {
		return nil
	}
	x := &gaining{began: time.Now(), fences: map[int]uint64{}, formers: map[uint64]engine.Set{}}
	for _, s := range g.list {
		of := engine.SetOf(s.Shard)
		x.of, x.fences[s.Shard] = x.of.Union(of), s.Fence
		if s.Clean {
			x.clean = x.clean.Union(of)
		}
		if s.Kept {
			x.kept = x.kept.Union(of)
		}
		if s.Former != 0 {
			x.formers[s.Former] = x.formers[s.Former].Union(of)
		}
	}
	g.list = nil
	return x
}

// gaining is a gain under way.
type gaining struct {
	began   time.Time
	of      engine.Set
	fences  map[int]uint64
	clean   engine.Set            // see cluster.Gained
	kept    engine.Set            // likewise
	formers map[uint64]engine.Set // lives whose mirrors tell of shards
	known   func()                // the lanes know which rows wait; nil: they have not been asked yet
	done    gainStep
	now     int64         // up to which the recovery has decided
	busy    []engine.Owed // see recovery.early
}

// gainStep is the last step of a gain that was made.
type gainStep uint8

const (
	gainDecided gainStep = iota + 1
	gainBusy
	gainOwned
)

// gain gains what was noted.
func (m *migrator) gain(ctx context.Context) error {
	for {
		if m.gaining == nil {
			if m.gaining = m.gains.take(); m.gaining == nil {
				return nil
			}
		}
		g := m.gaining
		if err := m.gainSome(ctx, g); err != nil {
			return fmt.Errorf("cannot gain shards: %w", err)
		}
		m.gaining = nil
		m.e.log.Info("gained shards", "shards", len(g.fences), "took", time.Since(g.began).Round(time.Millisecond))
	}
}

func (m *migrator) gainSome(ctx context.Context, g *gaining) error {
	e := m.e
	if g.done < gainDecided {
		if err := m.decide(ctx, g); err != nil {
			return err
		}
		g.done = gainDecided
	}
	if g.done < gainBusy {
		read := e.memory.Reads.Begin()
		err := e.resumeBusy(ctx, g.busy, read)
		read.End()
		if err != nil {
			return err
		}
		g.done, g.busy = gainBusy, nil
	}
	if g.done < gainOwned {
		if m.resumed <= g.now {
			if err := m.loadAhead(ctx); err != nil {
				return err
			}
		}
		if g.known == nil {
			g.known = e.memory.Gaining()
		}
		if from, to := g.now+1, e.memory.Loaded.Load(); from < to {
			read := e.memory.Reads.Begin()
			err := m.loadCold(ctx, g.of, from, to, read)
			read.End()
			if err != nil {
				return fmt.Errorf("cannot load what is due next: %w", err)
			}
		}
		m.gaps.add(g.of, e.memory.Loaded.Load(), max(m.filled.Load(), m.warmed.Load()))
		if m.gained.IsZero() && e.memory.Owned() != (engine.Set{}) { // else the process has no calls of its own yet
			m.gained = time.Now()
		}
		e.memory.Gain(g.of)
		g.done = gainOwned
	}
	if err := e.waitInLanes(ctx, g.of, g.now); err != nil {
		return err
	}
	if g.known != nil {
		g.known()
		g.known = nil
	}
	return m.resumeOf(ctx, g.of, g.now, m.resumed-1)
}

// decide decides and settles what was due.
func (m *migrator) decide(ctx context.Context, g *gaining) error {
	e := m.e
	found, err := e.cfg.Cold.Shards(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the shards: %w", err)
	}
	for i, fence := range g.fences {
		if found[i].Fence != fence {
			return fmt.Errorf("shard %d: %w", i, engine.ErrFenced)
		}
	}
	newest, err := e.cfg.Cluster.Members.Newest(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the newest id: %w", err)
	}
	e.IDs.Above(newest) // the former owner's clock may be ahead
	j := e.former.Load().in(g.kept)
	if err := e.readKept(g.kept, found, &j); err != nil {
		return err
	}
	for life, of := range g.formers {
		e.readMirror(ctx, life, of, &j)
	}
	r, err := e.recoverShards(ctx, g.of, g.clean, found, j)
	if err != nil {
		return err
	}
	e.memory.Came(g.of, resident.ByTakeover)
	e.memory.Came(g.clean, resident.ByHandover)
	e.memory.Came(g.kept, resident.ByStart)
	e.former.Store(nil)
	g.now, g.busy = r.now, r.early
	return nil
}

// readMirror adds what the mirror of a life tells of shards. What a mirror lacks is called
// again, so nothing waits for one that cannot be read.
func (e *Scheduler) readMirror(ctx context.Context, life uint64, of engine.Set, j *former) {
	if e.cfg.Cluster.Mirror == nil {
		return
	}
	began, n := time.Now(), 0
	err := e.cfg.Cluster.Mirror.Read(ctx, life, func(b []byte) error {
		t, err := engine.DecodeTask(b)
		if err == nil && of.Has(t.Key.Timer.Shard()) && !engine.RankOf(t).Below(engine.RankOf(j.finished[t.Key])) {
			j.finished[t.Key] = t
			j.hasEnded(t)
			n++
		}
		return nil // one that is of another version of the program is called again
	})
	level := slog.LevelInfo
	if err != nil {
		level = slog.LevelWarn
	}
	e.log.Log(ctx, level, "read what a former owner of shards has finished", "life", life, "tasks", n,
		"took", time.Since(began).Round(time.Millisecond), "error", err)
}

// openAmong begins a process that is one among several: it has no shards yet, and its
// first gain is of the journal of its former life.
func (e *Scheduler) openAmong() error {
	j, err := readFormer(e.journal, false)
	if err != nil {
		return err
	}
	e.former.Store(j)
	e.beginAt(e.now())
	return nil
}

// own is the stage that proves, again and again, that the shards are this process's.
func (e *Scheduler) own(ctx context.Context) error {
	if e.life == nil {
		return e.ownership.Run(ctx)
	}
	defer e.ownership.End()
	return e.life.Run(ctx)
}

// Life is that of a node among several; nil: the process is alone.
func (e *Scheduler) Life() *cluster.Member { return e.life }

// join makes the life of a process that is one among several.
func (e *Scheduler) join(cfg cluster.Config) {
	cfg.Cede = e.cede
	cfg.Gain = func(list []cluster.Gained) {
		e.cedes.gained(list)
		e.migrator.gains.add(list)
		e.migrator.wake()
	}
	cfg.Acknowledged = func() { e.ownership.Answered() }
	handover := e.cfg.Metrics.NewPrometheusHistogramExt("xtimer_handover_seconds", []float64{.05, .1, .2, .3, .5, 1, 2, 5, 10})
	cfg.Given = func(took time.Duration) { handover.Update(took.Seconds()) }
	e.life = cluster.New(cfg)
	if cfg.Wall != nil {
		e.cfg.Now = e.life.Now
	}
	e.ownership = process.OfLife(e.life.Fresh)
	e.cfg.Metrics.NewGauge("xtimer_lease_age_seconds", func() float64 { return e.life.LeaseAge().Seconds() })
	e.cfg.Metrics.NewGauge("xtimer_clock_offset_seconds", func() float64 { return e.life.Skew().Seconds() })
	e.cfg.Metrics.NewGauge("xtimer_shards_owned", func() float64 { return float64(e.memory.Owned().Len()) })
	e.cfg.Metrics.RegisterMetricsWriter(e.writeLife)
}

// writeLife writes what the life counts.
func (e *Scheduler) writeLife(w io.Writer) {
	vm.WriteCounterFloat64(w, "xtimer_quiet_seconds_total", e.life.Quiet().Seconds())
	vm.WriteMetadataIfNeeded(w, "xtimer_takeovers_total", "counter")
	for _, how := range cluster.Ways {
		_, _ = fmt.Fprintf(w, "xtimer_takeovers_total{how=%q} %d\n", how, e.life.Taken(how))
	}
}

// nodeParts are of a process that is one of several nodes.
type nodeParts struct {
	life    *cluster.Member // nil: the process is alone
	cedes   cedes
	former  atomic.Pointer[former] // what the first gain has of the journal; nil: there was one
	allots  *allot.Asker[*resident.Task]
	tells   atomic.Pointer[allot.Send] // results to other nodes; nil: there is no way
	items   atomic.Pointer[allot.Send] // of bulk operations to other nodes; nil: there is no way
	untold  atomic.Int64               // until then nothing is told, Unix ns: see tellOwner
	telling telling
}

// newQueue makes the queue. The owner of a flow key grants its calls: among several nodes one of
// them, of a process that is alone the process, which does that for slow keys.
func (e *Scheduler) newQueue() *fair.Queue[*resident.Task] {
	cfg := fair.Config[*resident.Task]{Places: e.cfg.MaxCalls, PerApp: e.cfg.MaxCallsPerApp, PerTarget: e.cfg.MaxCallsPerTarget, Run: e.execute, RunBatch: e.executeBatch}
	cfg.Wanting, cfg.OnlySlow = func() { e.allots.Wake() }, e.life == nil
	queue := fair.New(cfg)
	allots := allot.Config[*resident.Task]{Queue: queue, Store: e.cfg.Cold, Log: e.log}
	if e.life == nil {
		allots.Life, allots.Alone = aloneLife, true
		allots.Owns = func(shard int) (uint64, bool) { return e.memory.Shard(shard).Fence, true }
		allots.Seen = sync.OnceValue(e.seenAlone)
		allots.Clock = func() (earliest, latest int64, ok bool) { return e.now(), e.now(), true }
	} else {
		allots.Life, allots.Owns = e.life.Node().Life, e.life.Owns
		allots.Seen = func() *engine.Membership {
			if seen := e.life.Seen(); seen != nil {
				return &seen.Membership
			}
			return nil
		}
		allots.Clock = func() (earliest, latest int64, ok bool) { return e.life.Seen().Time() }
	}
	e.allots = allot.New(allots)
	return queue
}

// aloneLife is the life of a process that is alone, in seenAlone.
const aloneLife = 1

// seenAlone is what a process that is alone would see of its nodes. It has taken its shards.
func (e *Scheduler) seenAlone() *engine.Membership {
	m := &engine.Membership{Moves: 1, Nodes: []engine.Node{{Life: aloneLife, Speaks: engine.Speaks}}, Shards: new([engine.Shards]engine.Holding)}
	for i := range m.Shards {
		m.Shards[i] = engine.Holding{Holder: aloneLife, Fence: e.memory.Shard(i).Fence}
	}
	return m
}

// allotCalls is the stage that asks the owners of flow keys.
func (e *Scheduler) allotCalls(ctx context.Context) error { return e.allots.Run(ctx) }

// AllotBy has what this node asks the owners of flow keys sent to other nodes.
func (e *Scheduler) AllotBy(send allot.Send) { e.allots.SendBy(send) }

// Allot answers another node that asks for calls of flow keys which this one owns.
func (e *Scheduler) Allot(message []byte) ([]byte, error) { return e.allots.Answer(message) }

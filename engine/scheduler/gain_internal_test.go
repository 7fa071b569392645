package scheduler

import (
	"context"
	"log/slog"
	"testing"

	"xtimer/engine"
	"xtimer/engine/cluster"
	"xtimer/engine/resident"
)

// A shard that the former life of the node had taken and not gained is told of by the journal of the
// node and by the mirror of another life.
func TestFormersOfAGain(t *testing.T) {
	g := gains{list: []cluster.Gained{{Shard: 5, Kept: true, Former: 9}, {Shard: 6, Kept: true}, {Shard: 7, Former: 8}, {Shard: 8}}}
	x := g.take()
	if x.kept != engine.SetOf(5, 6) || len(x.formers) != 2 || x.formers[9] != engine.SetOf(5) || x.formers[8] != engine.SetOf(7) {
		t.Errorf("kept %v, formers %v", x.kept, x.formers)
	}
}

// A begin in the journal of the node counts no more where the row of the task, or the mirror of a later owner of the
// shard, has the end of the same attempt: that owner made the attempt again.
func TestBeginOfAnEarlierTime(t *testing.T) {
	k := engine.Key{Timer: 7, Due: 40}
	after := func(n int) *engine.Task {
		x := &engine.Task{Key: k, Status: engine.Retrying}
		for i := range n {
			x.Attempts = append(x.Attempts, engine.Attempt{N: i + 1})
		}
		return x
	}
	for _, c := range []struct {
		begun uint32
		ended int
		stays bool
	}{{1, 0, true}, {1, 1, false}, {1, 2, false}, {2, 1, true}} {
		begun := func() former {
			return former{map[engine.Key]*engine.Task{}, map[engine.Key]engine.Begun{k: {Key: k, Attempt: c.begun}}}
		}
		f := begun()
		e := &Scheduler{log: slog.New(slog.DiscardHandler)}
		e.cfg.Cluster = &cluster.Config{Mirror: oneEnd{after(c.ended)}}
		if e.readMirror(t.Context(), 9, engine.AllShards, &f); (len(f.begun) == 1) != c.stays {
			t.Errorf("begin of attempt %d beside the end of attempt %d in the mirror: %v", c.begun, c.ended, f.begun)
		}
		r := recovery{
			e: &Scheduler{memory: &resident.Memory{}}, former: begun(),
			rows: map[engine.TimerID]rowsFound{}, late: map[engine.TimerID][]engine.Owed{}, owed: map[engine.Key]bool{}, keys: map[engine.Key]bool{},
		}
		r.row(engine.Owed{Key: k, Task: after(c.ended)})
		if late := r.late[k.Timer]; (len(late) == 1 && late[0].Begun) != c.stays {
			t.Errorf("begin of attempt %d beside the end of attempt %d in the row: %+v", c.begun, c.ended, late)
		}
	}
}

// oneEnd is a mirror that has the end of one task.
type oneEnd struct{ task *engine.Task }

func (oneEnd) Append(context.Context, uint64, []engine.MirrorGroup, uint64, uint64) (bool, error) {
	return true, nil
}

func (m oneEnd) Read(_ context.Context, _ uint64, yield func([]byte) error) error {
	return yield(engine.EncodeTask(m.task))
}

// keptJournal is a journal that keeps an end of a task of each of these timers, and had settled shards up to 20.
type keptJournal struct {
	engine.Journal
	timers []engine.TimerID
}

func (keptJournal) Settled() *engine.Watermarks { return &engine.Watermarks{5: 20, 6: 20, 7: 20} }

func (j keptJournal) Replay(_ bool, _ func(engine.Begun) error, finished func([]byte) error) error {
	for _, id := range j.timers {
		if err := finished(engine.EncodeTask(&engine.Task{Key: engine.Key{Timer: id, Due: 10}})); err != nil {
			return err
		}
	}
	return nil
}

// The watermark of one shard is back, so the cold tier has lost commits. The results of the others may have been in
// the same ones: a settle stores a retry of a due that the watermark has passed, and moves no watermark for it.
func TestLostCommitsHadResultsOfAllShards(t *testing.T) {
	e := &Scheduler{log: slog.New(slog.DiscardHandler)}
	var timers []engine.TimerID
	for id, of := engine.TimerID(1), engine.SetOf(5, 6, 7); of != engine.SetOf(); id++ {
		if of.Has(id.Shard()) {
			timers, of = append(timers, id), of.Without(engine.SetOf(id.Shard()))
		}
	}
	e.cfg.Journal = keptJournal{timers: timers}
	for _, c := range []struct {
		w     int64
		takes int
	}{{20, 0}, {25, 0}, {19, 2}} {
		j, found := (*former)(nil).in(engine.SetOf()), make([]engine.Shard, engine.Shards)
		found[5].Watermark, found[6].Watermark = c.w, 20
		if err := e.readKept(engine.SetOf(5, 6), found, &j); err != nil || len(j.finished) != c.takes {
			t.Errorf("watermark %d: %d results, %v", c.w, len(j.finished), err)
		}
	}
}

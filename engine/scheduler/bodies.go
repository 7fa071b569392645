package scheduler

import (
	"context"
	"errors"
	"time"

	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/process"
	"xtimer/engine/resident"
)

// ready gets what the call of a task needs, before it begins. ok is false when the
// task is put off, for the cold tier cannot be read, or the process ends.
func (e *Scheduler) ready(t *resident.Task) (b resident.Body, ok bool) {
	return e.body(t, e.memory.Bodies.Take)
}

// readyToo is ready for a task that shares the call of another, and does not wait for room.
func (e *Scheduler) readyToo(t *resident.Task) (b resident.Body, ok, again bool) {
	b, ok = e.body(t, func(of engine.Lane, bytes int64) (s *resident.Share, ok bool) {
		s, ok = e.memory.Bodies.Try(of, bytes)
		again = !ok
		return s, ok
	})
	return b, ok, again
}

type taking func(of engine.Lane, bytes int64) (*resident.Share, bool)

func (e *Scheduler) body(t *resident.Task, take taking) (b resident.Body, ok bool) {
	if !t.IsHeavy() {
		return resident.Body{}, true
	}
	for {
		def := e.memory.Next(t)
		if def == nil {
			return resident.Body{}, true // begin sets the task aside
		}
		if b, ok = room(&e.memory.Bodies, def, take); !ok || def.Omitted == 0 {
			return b, ok
		}
		whole, err := e.whole(def.ID)
		if err == nil && whole.Version == def.Version {
			b.Timer = whole
			return b, true
		}
		b.Release()
		if err != nil {
			e.putOff(t, err)
			return resident.Body{}, false
		}
		process.Sleep(e.process.Context(), time.Millisecond) // a change of it is being put into force
	}
}

// room takes what a call of the timer takes: its request, and what is read for it.
func room(of *resident.Bodies, def *engine.Timer, take taking) (b resident.Body, ok bool) {
	b = resident.Body{
		Of: of, Key: def.Lane(),
		Bytes: int64(def.Payload()) + int64(def.Omitted), Version: def.Version,
	}
	if b.Share, ok = take(b.Key, b.Bytes); !ok {
		return resident.Body{}, false
	}
	return b, true
}

var errSilent = errors.New("the cold tier did not respond")

// whole reads a timer. While the cold tier fails, one asks at a time.
func (e *Scheduler) whole(id engine.TimerID) (*engine.Timer, error) {
	failed := e.tiers.ReadsFail()
	if failed {
		if !e.memory.Bodies.Asks.CompareAndSwap(false, true) {
			return nil, errSilent
		}
		defer e.memory.Bodies.Asks.Store(false)
	}
	t, err := e.cfg.Cold.Timer(e.process.Context(), id)
	if away := err != nil && !errors.Is(err, engine.ErrNotFound); away || failed {
		if !away {
			err = nil
		}
		e.tiers.Read(err)
	}
	return t, err
}

// putOff tries a task again in 1 to 5 s, all of one timer at once: no attempt of it
// has begun.
func (e *Scheduler) putOff(t *resident.Task, err error) {
	if errors.Is(err, context.Canceled) {
		return // the process ends, and the last settle leaves a row of it
	}
	e.bodyTrouble.tell(e.log, "cannot read timers that are to be called; their calls wait", err)
	at, offset := e.now()+1000, int64(plan.Scatter(uint64(t.Key.Timer), 0)%4000)
	e.memory.PutOff(t, at+(offset-at%4000+4000)%4000)
}

package transfer

import (
	"fmt"
	"time"

	"xtimer/engine"
)

// owedLine is an unfinished task, or a range of them; see engine.Owed.
type owedLine struct {
	Due        int64       `json:"due"`
	To         int64       `json:"to,omitempty"`
	Generation uint32      `json:"generation"`
	Origin     string      `json:"origin"`
	Begun      bool        `json:"begun,omitempty"`
	NotBefore  int64       `json:"not_before"`
	Lane       uint64      `json:"lane,omitempty,string"` // a hash: see engine.Lane
	OneShot    bool        `json:"one_shot,omitempty"`
	Held       int64       `json:"held_ms,omitempty"`
	Task       *recordLine `json:"task,omitempty"` // as far as it got
}

func owedLineOf(o *engine.Owed) owedLine {
	l := owedLine{
		Due: o.Key.Due, To: o.To, Generation: o.Generation, Origin: o.Origin.String(), Begun: o.Begun, NotBefore: o.NotBefore, Lane: uint64(o.Lane),
		OneShot: o.OneShot, Held: o.Held,
	}
	if o.Task != nil {
		l.Task = recordLineOf(o.Task)
	}
	return l
}

func (l *owedLine) owed(id engine.TimerID) (o engine.Owed, err error) {
	o = engine.Owed{
		Key: engine.Key{Timer: id, Due: l.Due}, To: l.To, Generation: l.Generation, Begun: l.Begun, NotBefore: l.NotBefore,
		Lane: engine.Lane(l.Lane), OneShot: l.OneShot, Held: l.Held,
	}
	if o.Origin, err = originOf(l.Origin); err != nil {
		return o, err
	}
	if l.Task != nil {
		if o.Task, err = l.Task.task(); err != nil {
			return o, err
		}
		if o.Task.Key != o.Key {
			return o, fmt.Errorf("the row of %[2]s contains task %[1]s", o.Task.Key, o.Key)
		}
	}
	return o, nil
}

// recordLine is a task and what became of it; see engine.Task.
type recordLine struct {
	Key         string        `json:"key"`
	App         string        `json:"app"`
	Name        string        `json:"name"`
	Generation  uint32        `json:"generation"`
	Origin      string        `json:"origin"`
	Status      string        `json:"status"`
	Reason      string        `json:"reason,omitempty"`
	DueLast     int64         `json:"due_last,omitempty"`
	Count       int64         `json:"count,omitempty"`
	LatenessNS  int64         `json:"lateness_ns"`
	NotBefore   int64         `json:"not_before,omitempty"`
	Ended       int64         `json:"ended,omitempty"`
	Base        int           `json:"base,omitempty"`
	Since       int64         `json:"since,omitempty"`
	Dismissed   int64         `json:"dismissed,omitempty"`
	DismissedBy string        `json:"dismissed_by,omitempty"`
	Attempts    []attemptLine `json:"attempts,omitempty"`
	Holds       []holdLine    `json:"holds,omitempty"`
}

// holdLine is what held a task; see engine.Hold.
type holdLine struct {
	By     string `json:"by"`
	Name   string `json:"name"`
	TookUS int64  `json:"took_us"`
}

type attemptLine struct {
	N          int    `json:"n"`
	StartedUS  int64  `json:"started_us"`
	TookNS     int64  `json:"took_ns"`
	Code       int    `json:"code,omitempty"`
	ErrorClass string `json:"error_class,omitempty"`
	Response   []byte `json:"response,omitempty"` // base64: it may be any bytes
	Batch      string `json:"batch,omitempty"`
	BatchSize  int    `json:"batch_size,omitempty"`
	// PhasesUS are those of engine.Phases in its order, the hold last; none when nobody knows.
	PhasesUS []int64 `json:"phases_us,omitempty"`
}

// phasesOf are the places of the phases, in their order.
func phasesOf(p *engine.Phases) []*time.Duration {
	return []*time.Duration{&p.Wheel, &p.Queue, &p.Dial, &p.TLS, &p.Send, &p.FirstByte, &p.Read, &p.Hold}
}

func recordLineOf(t *engine.Task) *recordLine {
	l := &recordLine{
		Key: t.Key.String(), App: t.App, Name: t.Name, Generation: t.Generation, Origin: t.Origin.String(), Status: t.Status.String(),
		Reason: t.Reason, DueLast: t.DueLast, Count: t.Count, LatenessNS: int64(t.Lateness), NotBefore: t.NotBefore,
		Ended: t.Ended, Base: t.Base, Since: t.Since, Dismissed: t.Dismissed, DismissedBy: t.DismissedBy,
	}
	for _, h := range t.Holds {
		l.Holds = append(l.Holds, holdLine{h.By, h.Name, h.Took.Microseconds()})
	}
	for i := range t.Attempts {
		a := &t.Attempts[i]
		l.Attempts = append(l.Attempts, attemptLine{
			N: a.N, StartedUS: a.Started, TookNS: int64(a.Took), Code: a.Code, ErrorClass: a.ErrorClass, Response: a.Response, BatchSize: a.BatchSize,
		})
		if a.BatchSize != 0 {
			l.Attempts[i].Batch = engine.BatchName(a.Batch)
		}
		if a.Phases != (engine.Phases{}) {
			places := phasesOf(&a.Phases)
			if a.Phases.Hold == 0 { // as former programs read it
				places = places[:len(places)-1]
			}
			for _, d := range places {
				l.Attempts[i].PhasesUS = append(l.Attempts[i].PhasesUS, d.Microseconds())
			}
		}
	}
	return l
}

func (l *recordLine) task() (*engine.Task, error) {
	key, err := engine.ParseKey(l.Key)
	if err != nil {
		return nil, err
	}
	if key.Timer > engine.MaxStoredID {
		return nil, fmt.Errorf("key: %s is not an id that xtimer generates: ids are at most %s", key.Timer, engine.MaxStoredID)
	}
	t := &engine.Task{
		Key: key, App: l.App, Name: l.Name, Generation: l.Generation, Reason: l.Reason, DueLast: l.DueLast, Count: l.Count,
		Lateness: time.Duration(l.LatenessNS), NotBefore: l.NotBefore, Ended: l.Ended, Base: l.Base, Since: l.Since,
		Dismissed: l.Dismissed, DismissedBy: l.DismissedBy,
	}
	var ok bool
	if t.Status, ok = engine.ParseTaskStatus(l.Status); !ok {
		return nil, fmt.Errorf("%q is not a status of a task", l.Status)
	}
	if t.Origin, err = originOf(l.Origin); err != nil {
		return nil, err
	}
	for _, h := range l.Holds {
		t.Holds = append(t.Holds, engine.Hold{By: h.By, Name: h.Name, Took: time.Duration(h.TookUS) * time.Microsecond})
	}
	for i := range l.Attempts {
		a := &l.Attempts[i]
		t.Attempts = append(t.Attempts, engine.Attempt{
			N: a.N, Started: a.StartedUS, Took: time.Duration(a.TookNS), Code: a.Code, ErrorClass: a.ErrorClass, Response: a.Response,
		})
		if a.BatchSize != 0 {
			if t.Attempts[i].Batch, err = engine.ParseBatchName(a.Batch); err != nil {
				return nil, err
			}
			t.Attempts[i].BatchSize = a.BatchSize
		}
		places := phasesOf(&t.Attempts[i].Phases)
		if len(a.PhasesUS) > len(places) {
			return nil, fmt.Errorf("an attempt has %d phases; this program knows %d", len(a.PhasesUS), len(places))
		}
		for j, us := range a.PhasesUS {
			*places[j] = time.Duration(us) * time.Microsecond
		}
	}
	return t, nil
}

func originOf(s string) (engine.Origin, error) {
	o, ok := engine.ParseOrigin(s)
	if !ok {
		return 0, fmt.Errorf("%q is not an origin of a task", s)
	}
	return o, nil
}

// Package tiertest holds the promises of the tiers as one suite, run by every
// implementation: each promise of engine/store.go is a named subtest. It also has the
// disk that fails as it is told to.
package tiertest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"xtimer/engine"
)

// Cold runs the promises of a cold tier. make builds a new, empty tier that is
// not open yet; Open after Close must find what Close left.
func Cold(t *testing.T, make func(t *testing.T) engine.Cold) {
	for _, p := range promises {
		t.Run(p.name, func(t *testing.T) {
			s := &cold{T: t, Cold: make(t), ctx: t.Context()}
			s.ok(s.Open(s.ctx))
			t.Cleanup(func() { _ = s.Close() })
			p.run(s)
		})
	}
}

var promises = []struct {
	name string
	run  func(s *cold)
}{
	{"a create is read back in every way", createIsRead},
	{"a name is taken once", nameIsUnique},
	{"a name is free again after a delete", nameIsFreed},
	{"timers without a name do not collide", nameless},
	{"a change wants the version that stands", changeWantsVersion},
	{"of many changes at once one wins", oneChangeWins},
	{"many creates of one name make one timer", oneCreateWins},
	{"outcomes are in order", outcomesInOrder},
	{"an Idempotency-Key answers with the first", onceAnswers},
	{"many creates with one Idempotency-Key make one timer", oneOfAKeyWins},
	{"an expired Idempotency-Key is free", onceExpires},
	{"a change without a new version keeps none", sameVersion},
	{"former versions are kept", versionsAreKept},
	{"lives tell all versions, and when they ended", livesAreTold},
	{"lives of large definitions have their heads", livesAreHeads},
	{"load keeps the order of ids", loadKeepsOrder},
	{"load carries heads of large definitions", loadCarriesHeads},
	{"lists page through all, once", listPages},
	{"lists filter", listFilters},
	{"lists of large timers tell all, once", listLarge},
	{"lists stay whole under writes", listUnderWrites},
	{"a cursor that was altered is refused", cursorIsChecked},
	{"counts follow", countsFollow},
	{"due names one-shots exactly", dueOneShots},
	{"due never omits a recurring timer", dueRecurring},
	{"due forgets what is disabled or deleted", dueForgets},
	{"a bound of another version is ignored", boundOfVersion},
	{"owed rows are put, replaced, paid and paged", owedRows},
	{"the owed rows of a timer are paged by due", owedPages},
	{"a change decides owed and history with it", changeDecides},
	{"what a change leaves owed is settled in pieces", leftOwed},
	{"a refused change decides nothing", refusedDecidesNothing},
	{"settling twice is settling once", settleTwice},
	{"what was settled stays when its lists are used again", settleKeeps},
	{"a finished timer is archived when nothing of it is owed", finishedBounds},
	{"settling is all or nothing behind a fence", fences},
	{"taking the shards shuts out who had them", take},
	{"an id that was used is told for ever", newest},
	{"watermarks move only forward", watermarks},
	{"a replayed record never hides a later one", replay},
	{"history is told newest first", historyOrder},
	{"history filters", historyFilters},
	{"history pages through all, once", historyPages},
	{"records of a one-shot are found by its timer", historyOfOneShots},
	{"records of a one-shot are found when its versions are gone", historyOfFormerOneShots},
	{"many records of a timer are found in one hour", historyIsDense},
	{"the newest record of a timer is found", lastTask},
	{"the ranks of many records are told in the order of their keys", ranks},
	{"dues are taken that have a record, or a row that is no range", taken},
	{"a due is taken while its record replaces its row", takenMeanwhile},
	{"a record replaces its former", recordReplaces},
	{"sweep archives what is finished", sweepArchives},
	{"sweep keeps what is owed", sweepKeepsOwed},
	{"sweep goes on behind what is owed", sweepGoesOn},
	{"sweep removes finished timers with their names", sweepRemoves},
	{"sweep drops whole days of history", sweepDropsDays},
	{"sweep keeps the records of ranges", sweepKeepsRecords},
	{"owed rows are read by lane", lanes},
	{"a set of shards is told what it holds, and nothing else", shards},
	{"minutes that were left out are told", leftOut},
	{"sweep frees expired Idempotency-Keys", sweepOnce},
	{"an object is put, changed and deleted by its version", objectVersions},
	{"a repeated put or delete of an object is done once", objectRepeated},
	{"of many puts of an object at once one wins", oneObjectWins},
	{"a change of an object changes the revision, and nothing else does", objectsRevised},
	{"objects are paged in the order of their keys", objectPages},
	{"of several objects all are stored or deleted, or none", objectsTogether},
	{"a bucket is kept until its time, and that of a greater fence stays", buckets},
	{"all of it survives a restart", survivesRestart},
	{"calls end with their context", contexts},
}

// cold is a tier under test.
type cold struct {
	*testing.T
	engine.Cold
	ctx context.Context
}

// t0 is when all tests begin: the middle of a day.
const t0 int64 = 1_763_640_000_000

const (
	minute = 60_000
	hour   = 60 * minute
	day    = 24 * hour
)

func (s *cold) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *cold) is(err, want error) {
	s.Helper()
	if !errors.Is(err, want) {
		s.Fatalf("got %v, want %v", err, want)
	}
}

// same compares by the printed form, which is what a failure shows.
func (s *cold) same(what string, got, want any) {
	s.Helper()
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		s.Fatalf("%s:\n got %s\nwant %s", what, g, w)
	}
}

// sameTimer compares the stored forms.
func (s *cold) sameTimer(got, want *engine.Timer) {
	s.Helper()
	if got == nil || want == nil || string(engine.AppendTimer(nil, got)) != string(engine.AppendTimer(nil, want)) {
		s.Fatalf("timer:\n got %+v\nwant %+v", got, want)
	}
}

// shot is an enabled one-shot.
func shot(id engine.TimerID, name string, due int64) *engine.Timer {
	t := &engine.Timer{
		Definition: engine.NewDefinition(), ID: id, Version: 1, Generation: 1,
		ValidFrom: t0, CreatedAt: t0, UpdatedAt: t0, At: due, LastDue: due,
	}
	t.App, t.Name = "app", name
	t.Schedule.At = due
	t.Callback.URL = "http://127.0.0.1:9/"
	return t
}

// recurring is an enabled timer of every minute, without an end.
func recurring(id engine.TimerID, name string) *engine.Timer {
	t := shot(id, name, 0)
	t.Schedule = engine.Schedule{Cron: "* * * * *"}
	t.Anchor = t0
	return t
}

// edited is the next version of t.
func edited(t *engine.Timer, edit func(*engine.Timer)) *engine.Timer {
	n := *t
	n.Version++
	n.UpdatedAt++
	n.UpdatedBy = fmt.Sprint("editor of ", n.Version)
	edit(&n)
	return &n
}

func (s *cold) create(ts ...*engine.Timer) {
	s.Helper()
	cs := make([]*engine.Change, len(ts))
	for i, t := range ts {
		cs[i] = &engine.Change{Timer: t, ID: t.ID}
	}
	for _, a := range s.ApplyAll(s.ctx, cs) {
		s.ok(a.Err)
	}
}

func (s *cold) change(old, next *engine.Timer) {
	s.Helper()
	_, err := s.Apply(s.ctx, &engine.Change{Timer: next, ID: old.ID, Was: old.Version})
	s.ok(err)
}

func (s *cold) delete(t *engine.Timer) {
	s.Helper()
	_, err := s.Apply(s.ctx, &engine.Change{ID: t.ID, Was: t.Version})
	s.ok(err)
}

// get is the timer as it stands.
func (s *cold) get(id engine.TimerID) *engine.Timer {
	s.Helper()
	t, err := s.Timer(s.ctx, id)
	s.ok(err)
	return t
}

// record encodes a task for a settlement.
func record(t *engine.Task) engine.Record {
	return engine.Record{Key: t.Key, Status: t.Status, Encoded: engine.AppendTask(nil, t)}
}

// task is a record with n attempts.
func task(id engine.TimerID, due int64, st engine.TaskStatus, n int) *engine.Task {
	t := &engine.Task{Key: engine.Key{Timer: id, Due: due}, App: "app", Name: "name", Generation: 1, Status: st}
	for i := range n {
		t.Attempts = append(t.Attempts, engine.Attempt{N: i + 1, Started: due * 1000, Code: 500})
	}
	return t
}

func (s *cold) settle(st *engine.Settlement) {
	s.Helper()
	s.ok(s.Settle(s.ctx, st))
}

func (s *cold) settleTasks(ts ...*engine.Task) {
	s.Helper()
	st := &engine.Settlement{Owner: "n"}
	for _, t := range ts {
		st.Tasks = append(st.Tasks, record(t))
	}
	s.settle(st)
}

// watermark moves all shards.
func (s *cold) watermark(w int64) {
	s.Helper()
	s.settle(&engine.Settlement{Owner: "n", Marks: marks(w)})
}

func marks(w int64) []engine.Mark {
	ms := make([]engine.Mark, engine.Shards)
	for i := range ms {
		ms[i] = engine.Mark{Shard: i, W: w}
	}
	return ms
}

// sweep sweeps until there is nothing more to do.
func (s *cold) sweep(now, finishedBefore, historyBefore int64) {
	s.Helper()
	for range 10_000 {
		more, err := s.Sweep(s.ctx, now, finishedBefore, historyBefore)
		s.ok(err)
		if !more {
			return
		}
	}
	s.Fatal("Sweep finds no end")
}

// list walks all pages of a list and returns the ids in the order told.
func (s *cold) list(f engine.TimerFilter, limit int) (ids []engine.TimerID) {
	s.Helper()
	for cursor := ""; ; {
		ts, next, err := s.Timers(s.ctx, f, cursor, limit)
		s.ok(err)
		if len(ts) > limit {
			s.Fatalf("a page of %d has %d timers", limit, len(ts))
		}
		for _, t := range ts {
			ids = append(ids, t.ID)
		}
		if next == "" {
			return ids
		}
		if next == cursor {
			s.Fatal("the cursor stands still")
		}
		cursor = next
	}
}

// history walks all pages of history.
func (s *cold) history(f engine.TaskFilter, limit int) (ks []engine.Key) {
	s.Helper()
	for before := (engine.Key{}); ; {
		ts, next, err := s.Tasks(s.ctx, f, before, limit)
		s.ok(err)
		if len(ts) > limit {
			s.Fatalf("a page of %d has %d tasks", limit, len(ts))
		}
		for _, t := range ts {
			ks = append(ks, t.Key)
		}
		if next == (engine.Key{}) {
			return ks
		}
		if next == before {
			s.Fatal("the pages stand still")
		}
		before = next
	}
}

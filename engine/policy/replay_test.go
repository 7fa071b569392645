package policy

import (
	"testing"

	"xtimer/engine"
)

func record(due int64, st engine.TaskStatus, attempt int) engine.Record {
	t := task(due, st, attempt)
	return engine.Record{Key: t.Key, Status: st, Encoded: engine.AppendTask(nil, t)}
}

func task(due int64, st engine.TaskStatus, attempt int) *engine.Task {
	t := &engine.Task{Key: engine.Key{Timer: 1, Due: due}, Status: st}
	if attempt > 0 {
		t.Attempts = []engine.Attempt{{N: attempt}}
	}
	return t
}

func TestLaterRecords(t *testing.T) {
	const stored = 5
	ranks := map[engine.Key]engine.Rank{{Timer: 1, Due: stored}: {Attempt: 2, Final: true}}
	rs := []engine.Record{
		record(stored, engine.Retrying, 1), // fewer attempts than stored
		record(stored, engine.Retrying, 2), // as many, and not the end
		record(stored, engine.Dead, 2),     // says the same
		record(6, engine.Retrying, 2),      // not stored
		record(6, engine.Retrying, 1),      // fewer than the one before it
		record(6, engine.Succeeded, 3),
	}
	later, err := LaterRecords(rs, ranks)
	if err != nil || len(later) != 3 || &later[0].Encoded[0] != &rs[2].Encoded[0] || &later[1].Encoded[0] != &rs[3].Encoded[0] || &later[2].Encoded[0] != &rs[5].Encoded[0] {
		t.Fatalf("%v, %v", later, err)
	}
	if got := ranks[engine.Key{Timer: 1, Due: 6}]; got != (engine.Rank{Attempt: 3, Final: true}) {
		t.Errorf("the rank after it is %+v", got)
	}
	if _, err := LaterRecords([]engine.Record{{Encoded: []byte{0xff}}}, ranks); err == nil {
		t.Error("a damaged record was taken")
	}
}

// A run is not replaced by the record of its first due, which is all that is stored of the other
// dues; by another run it is.
func TestLaterRecordOfARun(t *testing.T) {
	run := task(5, engine.Skipped, 0)
	run.DueLast, run.Count = 9, 3
	one, other := record(5, engine.Succeeded, 1), record(5, engine.Skipped, 0)
	other.Encoded = engine.AppendTask(nil, run)
	ranks := map[engine.Key]engine.Rank{run.Key: engine.RankOf(run)}
	later, err := LaterRecords([]engine.Record{one, other}, ranks)
	if err != nil || len(later) != 1 || &later[0].Encoded[0] != &other.Encoded[0] {
		t.Errorf("%v, %v", later, err)
	}
}

func TestLaterRows(t *testing.T) {
	stored := map[engine.Key]*engine.Owed{{Timer: 1, Due: 5}: {Task: task(5, engine.Retrying, 2)}}
	rows := []engine.Owed{
		{Key: engine.Key{Timer: 1, Due: 5}, Task: task(5, engine.Retrying, 1)},
		{Key: engine.Key{Timer: 1, Due: 5}, NotBefore: 1},
		{Key: engine.Key{Timer: 1, Due: 5}, Task: task(5, engine.Retrying, 2)},
		{Key: engine.Key{Timer: 1, Due: 6}},
	}
	later := LaterRows(rows, func(k engine.Key) *engine.Owed { return stored[k] })
	if len(later) != 2 || later[0].Task != rows[2].Task || later[1].Key.Due != 6 {
		t.Errorf("%+v", later)
	}
	if len(rows) != 4 || rows[0].Task == nil {
		t.Error("the caller's list was changed")
	}
}

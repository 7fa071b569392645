package verify

import (
	"xtimer/engine"
)

// Finding is a place where the ledger does not prove itself: what history says
// is not what the definitions, with the times at which they were in force, ask for.
type Finding struct {
	Kind      FindingKind
	Timer     engine.TimerID
	App, Name string
	// Due to DueLast, Count of them: neighbouring gaps are one finding.
	Due, DueLast int64
	Count        int64
	Detail       string
}

// FindingKind says what is wrong.
type FindingKind uint8

// What verifying can find.
const (
	// Gap: a due that has passed, has no final record and is not owed.
	Gap FindingKind = iota
	// Repeat: a due that was decided twice, or called again after it was taken.
	Repeat
	// Early: an attempt that started before its due, or a task that was skipped as
	// stale before it was.
	Early
	// FoundLate: a first attempt later than the bound that was asked for.
	FoundLate
	// Stray: a record of a due that no definition has, or of a call that began
	// after its timer was deleted, disabled or given another schedule.
	Stray
	// Miscount: a run of dues in one record that counts other than the plan.
	Miscount
	// Unproven: no record, where history is known not to be whole: successes are
	// sampled, or the disk or history's bound left no room. It is no failure.
	Unproven
	// Damaged: a row of the store that cannot be read, or is that of another task.
	Damaged

	findingKinds
)

var findingNames = [findingKinds]string{"gap", "repeat", "early", "late", "stray", "miscount", "unproven", "damaged"}

func (k FindingKind) String() string { return findingNames[k] }

func (e *era) finding(kind FindingKind, due int64, detail string) Finding {
	return Finding{Kind: kind, Timer: e.ID, App: e.App, Name: e.Name, Due: due, DueLast: due, Count: 1, Detail: detail}
}

package transfer

import (
	"fmt"

	"xtimer/engine"
	"xtimer/engine/plan"
	api "xtimer/httpapi/client"
)

// line is a line of an export: a timer as the API takes it, and besides what a
// store knows of it; or the record of a task, and nothing else; or minutes of which not
// every record is there (their beginnings, Unix ms).
//
//	{"app":…,"name":…,"schedule":{…},"callback":{…},…,"stored":{…},"owed":[…]}
//	{"record":{…}}
//	{"left_out":[…]}
//
// A line of a timer needs no other line. So a file can be cut, filtered and put
// together by lines, and what is left is imported whole or not at all.
type line struct {
	api.Definition
	Stored *stored     `json:"stored,omitempty"`
	Owed   []owedLine  `json:"owed,omitempty"`
	Record *recordLine `json:"record,omitempty"`

	LeftOut []int64 `json:"left_out,omitempty"`
}

// stored is a timer's place in the system. Instants are Unix ms. An export over
// the API has what the API tells, and no generation: only the definition can be
// made from it elsewhere.
type stored struct {
	ID         string `json:"id"`
	Version    uint32 `json:"version"`
	Generation uint32 `json:"generation,omitempty"`
	Status     string `json:"status"`
	Reason     string `json:"reason,omitempty"`
	ValidFrom  int64  `json:"valid_from,omitempty"`
	Anchor     int64  `json:"anchor,omitempty"`
	At         int64  `json:"at,omitempty"` // of a delay, too
	LastDue    int64  `json:"last_due,omitempty"`
	CreatedAt  int64  `json:"created_at"`
	UpdatedAt  int64  `json:"updated_at"`
	UpdatedBy  string `json:"updated_by,omitempty"`
	// DisabledUntil is told where it lies in the future.
	DisabledUntil int64 `json:"disabled_until,omitempty"`
	// FinishedTo is the watermark of the timer's shard: dues up to it are
	// finished, except for those in owed.
	FinishedTo int64 `json:"finished_to,omitempty"`
	Finished   bool  `json:"finished,omitempty"` // nothing of it is left to call
}

// isWhole reports whether a store's timer can be made of it, with id and keys.
func (s *stored) isWhole() bool { return s != nil && s.Generation > 0 }

// lineOf is a timer of a store, with what is owed of it and the watermark of
// its shard.
func lineOf(t *engine.Timer, owed []engine.Owed, finishedTo, now int64) *line {
	l := &line{Definition: sentDefinition(&t.Definition), Stored: &stored{
		ID: t.ID.String(), Version: t.Version, Generation: t.Generation, Status: t.Status.String(), Reason: t.Reason,
		ValidFrom: t.ValidFrom, Anchor: t.Anchor, At: t.At, LastDue: t.LastDue, CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, UpdatedBy: t.UpdatedBy,
		FinishedTo: finishedTo,
		Finished:   t.StatusAt(finishedTo, len(owed) == 0) == engine.Finished,
	}}
	l.Stored.DisabledUntil = t.DisabledUntil(now)
	for i := range owed {
		l.Owed = append(l.Owed, owedLineOf(&owed[i]))
	}
	return l
}

// timer is the store's timer that the line tells of, and what is owed of it.
func (l *line) timer() (*engine.Timer, []engine.Owed, error) {
	d, err := storedDefinition(&l.Definition)
	if err != nil {
		return nil, nil, err
	}
	s := l.Stored
	id, err := engine.ParseTimerID(s.ID)
	if err != nil {
		return nil, nil, fmt.Errorf("stored.id: %w", err)
	}
	if id > engine.MaxStoredID {
		return nil, nil, fmt.Errorf("stored.id: %s is not an id that xtimer generates: ids are at most %s", id, engine.MaxStoredID)
	}
	status, ok := engine.ParseStatus(s.Status)
	if !ok {
		return nil, nil, fmt.Errorf("stored.status: %q is not one of enabled, disabled and finished", s.Status)
	}
	t := &engine.Timer{
		Definition: d, ID: id, Status: status, Reason: s.Reason, Version: s.Version, Generation: s.Generation,
		ValidFrom: s.ValidFrom, Anchor: s.Anchor, At: s.At, LastDue: s.LastDue, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt, UpdatedBy: s.UpdatedBy,
	}
	if t.Version == 0 || t.Schedule.OneShot() != (t.At != 0) {
		return nil, nil, fmt.Errorf("stored: version and at do not fit the timer")
	}
	if _, err := plan.Of(t); err != nil {
		return nil, nil, err
	}
	owed := make([]engine.Owed, 0, len(l.Owed))
	for i := range l.Owed {
		o, err := l.Owed[i].owed(id)
		if err != nil {
			return nil, nil, fmt.Errorf("owed: %w", err)
		}
		owed = append(owed, o)
	}
	return t, owed, nil
}

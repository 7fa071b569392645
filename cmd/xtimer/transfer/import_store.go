package transfer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"xtimer/cmd/xtimer/settings"
	"xtimer/cmd/xtimer/store"
	"xtimer/engine"
	"xtimer/engine/plan"
	"xtimer/engine/policy"
	"xtimer/engine/scheduler"
	api "xtimer/httpapi/client"
	"xtimer/tier/memory"
)

// storeTarget makes timers in a store that no server uses.
//
// The timers of a store's export bring the instant with them up to which they are
// finished; policy.Arrival decides what that means in a shard with another watermark. A
// store without timers gets that instant as its watermark.
//
// What is owed there is owed here, whatever the watermark is. A timer and all that is
// owed of it are one change: it is there whole or not at all.
type storeTarget struct {
	cold    engine.Cold
	dryRun  bool
	earlier *earlier // of a dry run
	shards  []engine.Shard
	// isEmpty tells of a shard that none of its timers is here yet, so that its
	// watermark may be moved.
	isEmpty [engine.Shards]bool
	ids     engine.IDs

	records  bool  // some are among the lines
	recorded int64 // since when history is kept, Unix ms: nobody asks for older dues
	// The dues of the timers of the import that were finished before, and have their
	// records elsewhere, are none before first and none after last.
	first, last int64
}

// openTarget opens a store to import into and takes it: a server that has it
// all the same cannot settle any more, and ends.
func openTarget(ctx context.Context, s *settings.Settings, dryRun bool) (to *storeTarget, end func() error, err error) {
	unlock, cold, lock := func() {}, store.Cold(s), s.DataDir != ""
	if dryRun && lock && s.MySQLDSN == "" {
		// What is not there is a store without timers, and is not made.
		if _, err := os.Stat(filepath.Join(s.DataDir, scheduler.ColdFolder)); errors.Is(err, fs.ErrNotExist) {
			cold, lock = memory.NewCold(), false
		}
	}
	if lock {
		unlock, err = store.Lock(s.DataDir)
		if errors.Is(err, store.ErrLocked) {
			return nil, nil, fmt.Errorf("%w: import into the server with --server http://127.0.0.1:8080, or the address on which it listens, or stop the server first", err)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	defer func() {
		if err != nil {
			unlock()
		}
	}()
	if err := store.Unused(ctx, s); err != nil {
		return nil, nil, err
	}
	if err := cold.Open(ctx); err != nil {
		return nil, nil, fmt.Errorf("cannot open the store: %w", err)
	}
	end = func() error {
		defer unlock()
		return cold.Close()
	}
	to = &storeTarget{
		cold: cold, dryRun: dryRun, earlier: newEarlier(), first: engine.MaxDue,
		recorded: time.Now().Add(-s.HistoryRetention).UnixMilli(),
	}
	if err := to.begin(ctx); err != nil {
		return nil, nil, errors.Join(err, cold.Close())
	}
	return to, end, nil
}

// importer is the owner of a store's shards while timers are imported.
const importer = "xtimer import"

func (s *storeTarget) begin(ctx context.Context) (err error) {
	n, err := s.cold.Counts(ctx)
	if err != nil {
		return fmt.Errorf("cannot count the timers: %w", err)
	}
	if s.dryRun {
		return nil
	}
	shards, newest, err := s.cold.Take(ctx, importer)
	if err != nil {
		return fmt.Errorf("cannot take the shards: %w", err)
	}
	s.shards = shards
	s.ids.Above(newest)
	for i := range s.isEmpty {
		s.isEmpty[i] = n == engine.Counts{}
	}
	return nil
}

func (s *storeTarget) take(ctx context.Context, batch []*item) error {
	if len(batch) > 0 && batch[0].isHistory() {
		s.records = true
		return s.takeRecords(ctx, batch)
	}
	now := time.Now().UnixMilli()
	var todo []*item
	var changes []*engine.Change
	for _, i := range batch {
		if !i.isWaiting() {
			continue
		}
		c, err := s.change(i, now)
		if err != nil {
			i.fail(err)
		}
		if i.isWaiting() {
			todo, changes = append(todo, i), append(changes, c)
		}
	}
	if s.dryRun {
		return s.compare(ctx, todo, changes)
	}
	if err := s.mark(ctx, todo, changes); err != nil {
		return err
	}
	arrivals := make([]policy.Arrival, len(changes))
	for n, c := range changes {
		arrivals[n] = policy.Arrival{FinishedTo: todo[n].Stored.finishedTo(), Watermark: s.shards[c.ID.Shard()].Watermark, Now: now}
		if err := arrivals[n].Fit(c); err != nil {
			return err
		}
	}
	for n, a := range s.cold.ApplyAll(ctx, changes) {
		if err := s.judge(ctx, todo[n], changes[n], a); err != nil {
			return err
		}
		if err := s.note(ctx, todo[n], changes[n].Timer, arrivals[n]); err != nil {
			return err
		}
	}
	return nil
}

// change is the create of an item, nil for one that got its result.
func (s *storeTarget) change(i *item, now int64) (*engine.Change, error) {
	if i.Stored.isWhole() {
		t, owe, err := i.timer()
		if err != nil {
			return nil, err
		}
		return &engine.Change{Timer: t, ID: t.ID, At: now, Owe: owe}, nil
	}
	if i.skipFinished() {
		return nil, nil
	}
	sent := i.asAt()
	d, err := storedDefinition(&sent)
	if err != nil {
		return nil, err
	}
	t, err := plan.NewTimer(&d, s.ids.Next(now, engine.AllShards), now)
	if err != nil {
		return nil, err
	}
	if i.isDisabled(now) {
		policy.Disable(t, i.Stored.Reason, now, i.Stored.DisabledUntil)
	}
	return &engine.Change{Timer: t, ID: t.ID, At: now}, nil
}

// mark moves the watermarks of shards without timers to where they stood in the
// export.
func (s *storeTarget) mark(ctx context.Context, todo []*item, changes []*engine.Change) error {
	st := engine.Settlement{Owner: importer}
	for n, c := range changes {
		shard := c.Timer.ID.Shard()
		if !s.isEmpty[shard] {
			continue
		}
		s.isEmpty[shard] = false
		if w := todo[n].Stored.finishedTo(); w > s.shards[shard].Watermark {
			s.shards[shard].Watermark = w
			st.Marks = append(st.Marks, engine.Mark{Shard: shard, Fence: s.shards[shard].Fence, W: w})
		}
	}
	if len(st.Marks) == 0 {
		return nil
	}
	if err := s.cold.Settle(ctx, &st); err != nil {
		return fmt.Errorf("cannot move the watermarks: %w", err)
	}
	return nil
}

func (s *stored) finishedTo() int64 {
	if !s.isWhole() {
		return 0
	}
	return s.FinishedTo
}

// note notes which dues of a timer were finished before it came here, and have no records
// here. A timer that is here already may be of an import that was killed before it could
// tell of them.
func (s *storeTarget) note(ctx context.Context, i *item, t *engine.Timer, a policy.Arrival) error {
	if i.result != api.Created && i.result != api.Unchanged {
		return nil
	}
	first, last, ok, err := a.Finished(t, s.recorded)
	if err != nil || !ok {
		return err
	}
	if i.result == api.Unchanged {
		if recorded, err := s.hasRecords(ctx, t.ID, first, last); err != nil || recorded {
			return err
		}
	}
	s.first, s.last = min(s.first, first), max(s.last, last)
	return nil
}

// hasRecords reports whether history has records of dues of a timer from first to last.
func (s *storeTarget) hasRecords(ctx context.Context, id engine.TimerID, first, last int64) (bool, error) {
	for before := (engine.Key{}); ; {
		ts, next, err := s.cold.Tasks(ctx, engine.TaskFilter{Timer: id, From: first, To: last + 1}, before, 1)
		var damage *engine.Damage
		switch {
		case errors.As(err, &damage), len(ts) > 0:
			return true, nil
		case err != nil:
			return false, fmt.Errorf("cannot look for the records of timer %s: %w", id, err)
		case next == (engine.Key{}):
			return false, nil
		}
		before = next
	}
}

// leaveOut tells verify of which minutes history is not whole, for it was not
// exported: what was finished there would be missed here.
func (s *storeTarget) leaveOut(ctx context.Context) error {
	if s.records {
		return nil
	}
	const minute = 60_000
	var minutes []int64
	for m := s.first - s.first%minute; m <= s.last; m += minute {
		minutes = append(minutes, m)
	}
	for some := range slices.Chunk(minutes, 10_000) {
		if err := s.cold.Settle(ctx, &engine.Settlement{Owner: importer, LeftOut: some}); err != nil {
			return fmt.Errorf("cannot note that there is no history: %w", err)
		}
	}
	return nil
}

// judge says what became of a create.
func (s *storeTarget) judge(ctx context.Context, i *item, c *engine.Change, a engine.Applied) error {
	there := a.Existing
	if a.Err != nil && there == nil && errors.Is(a.Err, engine.ErrConflict) {
		var err error
		if there, err = s.cold.Timer(ctx, c.ID); err != nil {
			return fmt.Errorf("cannot look for timer %s: %w", c.ID, err)
		}
	}
	var refused *engine.Fault
	switch {
	case there != nil:
		i.meets(there, c.Timer)
	case a.Err == nil:
		i.set(api.Created, "")
	case errors.As(a.Err, &refused) && refused.Kind == engine.FaultInvalid:
		i.fail(a.Err)
	default:
		return fmt.Errorf("cannot store timers: %w", a.Err)
	}
	return nil
}

// meets says what it means that a timer is there already.
func (i *item) meets(there, t *engine.Timer) {
	sameName := there.App == t.App && there.Name == t.Name
	sameDefinition := there.Definition.Equal(&t.Definition)
	switch {
	case !sameName:
		i.set(resultConflict, "id %s belongs to the timer %s/%s here", there.ID, there.App, there.Name)
	case i.Stored.isWhole() && there.ID != t.ID:
		i.set(resultConflict, "the timer of that name here has another id: %s", there.ID)
	case !sameDefinition:
		i.set(resultConflict, "timer %s of that name has another definition, version %d", there.ID, there.Version)
	default:
		i.set(api.Unchanged, "")
	}
}

// compare says what would become of timers.
func (s *storeTarget) compare(ctx context.Context, todo []*item, changes []*engine.Change) error {
	for n, i := range todo {
		t := changes[n].Timer
		there, err := s.cold.TimerByName(ctx, t.App, t.Name)
		if errors.Is(err, engine.ErrNotFound) && i.Stored.isWhole() {
			there, err = s.cold.Timer(ctx, t.ID)
		}
		switch {
		case errors.Is(err, engine.ErrNotFound) && i.Stored.isWhole():
			s.earlier.add(i, t.ID, &t.Definition)
		case errors.Is(err, engine.ErrNotFound):
			s.earlier.add(i, 0, &t.Definition)
		case err != nil:
			return fmt.Errorf("cannot look for a timer: %w", err)
		default:
			i.meets(there, t)
		}
	}
	return nil
}

// takeRecords stores records, and of which minutes there are not all; a record that is
// there already with as many attempts stays as it is.
func (s *storeTarget) takeRecords(ctx context.Context, batch []*item) error {
	st := engine.Settlement{Owner: importer, Replayed: true}
	for _, i := range batch {
		if !i.isWaiting() {
			continue
		}
		if i.LeftOut != nil {
			i.result = api.Created
			st.LeftOut = append(st.LeftOut, i.LeftOut...)
			continue
		}
		t, err := i.Record.task()
		if err != nil {
			i.fail(fmt.Errorf("record: %w", err))
			continue
		}
		i.result = api.Created
		st.Tasks = append(st.Tasks, engine.Record{Key: t.Key, Status: t.Status, Encoded: engine.AppendTask(nil, t)})
	}
	if s.dryRun {
		return nil
	}
	if err := s.cold.Settle(ctx, &st); err != nil {
		return fmt.Errorf("cannot store records: %w", err)
	}
	return nil
}

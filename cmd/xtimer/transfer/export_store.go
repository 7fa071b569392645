package transfer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xtimer/cmd/xtimer/exit"
	"xtimer/cmd/xtimer/settings"
	"xtimer/cmd/xtimer/store"
	"xtimer/engine"
	"xtimer/engine/scheduler"
	"xtimer/tier/memory"
	"xtimer/wal"
)

// fromStore writes the timers of a store that no server uses.
func (e *export) fromStore(ctx context.Context) (err error) {
	f, err := e.storeFilter()
	if err != nil {
		return err
	}
	cold, end, err := openSettled(ctx, &e.store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	return e.storedLines(ctx, cold, f)
}

// storeFilter is the filter for a store. It has no status, for a store keeps another status
// than a reader sees, see storedTimer.
func (e *export) storeFilter() (f engine.TimerFilter, err error) {
	if _, ok := engine.ParseStatus(e.filter.Status); !ok && e.filter.Status != "" {
		return f, exit.Usage("--status: %q is not one of enabled, disabled, finished", e.filter.Status)
	}
	f = engine.TimerFilter{App: e.filter.App, NamePrefix: e.filter.NamePrefix, Search: e.filter.Search}
	if f.Labels, err = parseLabels(e.filter.Label); err != nil {
		return f, exit.Usage("--label: %w", err)
	}
	return f, nil
}

// storedLines writes what a store has, and then says whether damaged timers or tasks are
// missing.
func (e *export) storedLines(ctx context.Context, cold engine.Cold, f engine.TimerFilter) error {
	listed, err := e.storedTimers(ctx, cold, f)
	if err != nil {
		return err
	}
	if e.history {
		if err := e.storedRecords(ctx, cold); err != nil {
			return err
		}
	}
	if e.damaged > 0 {
		return fmt.Errorf("%d pending tasks are damaged and not exported: xtimer verify names them", e.damaged)
	}
	if !f.IsEmpty() {
		return nil
	}
	n, err := cold.Counts(ctx)
	if err != nil {
		return fmt.Errorf("cannot count the timers: %w", err)
	}
	// A list leaves out what cannot be read.
	if all := n.Enabled + n.Disabled + n.Finished; all > listed {
		return fmt.Errorf("%d of %d timers are damaged and not exported: xtimer verify names them", all-listed, all)
	}
	return nil
}

// openSettled opens a store and brings it to the present: an engine that is
// opened, and never run, has recovered and calls nothing. One that import has made,
// and no server has used, has no journal: it gets an empty one.
func openSettled(ctx context.Context, s *settings.Settings) (cold engine.Cold, end func() error, err error) {
	if s.DataDir == "" {
		return nil, nil, exit.Usage("--data-dir: give the data directory of the server that used the database; its journal may hold results that are not in MySQL yet")
	}
	dir := filepath.Join(s.DataDir, scheduler.JournalFolder)
	folder := dir
	if s.MySQLDSN == "" {
		folder = filepath.Join(s.DataDir, scheduler.ColdFolder)
	}
	if _, err := os.Stat(folder); err != nil {
		return nil, nil, exit.Usage("%s is not the data directory of a server: %w", s.DataDir, err)
	}
	unlock, err := store.Lock(s.DataDir)
	if errors.Is(err, store.ErrLocked) {
		return nil, nil, fmt.Errorf("%w: ask the server with --server http://127.0.0.1:8080, or the address on which it listens, or stop the server first", err)
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			unlock()
		}
	}()
	if _, err := os.Stat(filepath.Join(s.DataDir, store.RestoringFolder)); err == nil {
		return nil, nil, fmt.Errorf("%s: a restore was interrupted here: remove the directory and restore again", s.DataDir)
	}
	if err := store.Unused(ctx, s); err != nil {
		return nil, nil, err
	}
	log := slog.New(slog.DiscardHandler)
	cold = store.Cold(s)
	journal := wal.New(wal.Config{Dir: dir, Logger: log})
	e := scheduler.New(scheduler.Config{Cold: cold, Warm: memory.NewWarm(), Journal: journal, Log: log})
	if err := e.Open(ctx); err != nil {
		return nil, nil, err
	}
	return cold, func() error {
		defer unlock()
		return errors.Join(journal.Close(), cold.Close())
	}, nil
}

// aPage is how many timers or records are read at a time.
const aPage = 1000

func (e *export) storedTimers(ctx context.Context, cold engine.Cold, f engine.TimerFilter) (listed int64, err error) {
	shards, err := cold.Shards(ctx)
	if err != nil {
		return 0, fmt.Errorf("cannot read the watermarks: %w", err)
	}
	// Of what is owed only the ids are held. Most timers owe nothing, and are
	// not asked about one by one.
	owing := map[engine.TimerID]int64{}
	err = cold.Owed(ctx, engine.AllShards, -1, engine.MaxDue, func(os []engine.Owed) error {
		for i := range os {
			owing[os[i].Key.Timer]++
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("cannot read the pending tasks: %w", err)
	}
	now := time.Now().UnixMilli()
	for after := ""; ; {
		ts, next, err := cold.Timers(ctx, f, after, aPage)
		if err != nil {
			return 0, fmt.Errorf("cannot read the timers: %w", err)
		}
		listed += int64(len(ts))
		for _, t := range ts {
			if err := e.storedTimer(ctx, cold, t, shards, owing, now); err != nil {
				return 0, err
			}
		}
		if after = next; after == "" {
			break
		}
	}
	return listed, e.countStrays(ctx, cold, owing)
}

func (e *export) storedTimer(ctx context.Context, cold engine.Cold, t *engine.Timer, shards []engine.Shard, owing map[engine.TimerID]int64, now int64) error {
	var owed []engine.Owed
	if owing[t.ID] > 0 {
		var err error
		if owed, err = cold.OwedPage(ctx, t.ID, -1, int(owing[t.ID])); err != nil {
			return fmt.Errorf("cannot read the pending tasks of timer %s: %w", t.ID, err)
		}
		delete(owing, t.ID)
		known := len(owed)
		owed = slices.DeleteFunc(owed, func(o engine.Owed) bool { return o.Damaged != nil })
		e.damaged += int64(known - len(owed))
	}
	l := lineOf(t, owed, shards[t.ID.Shard()].Watermark, now)
	status := l.Stored.Status
	switch {
	case l.Stored.Finished:
		status = engine.Finished.String()
	case l.Stored.DisabledUntil != 0:
		status = engine.Disabled.String()
	}
	if e.filter.Status != "" && e.filter.Status != status {
		return nil
	}
	return e.write(l)
}

// countStrays counts what is owed of timers that are gone.
func (e *export) countStrays(ctx context.Context, cold engine.Cold, owing map[engine.TimerID]int64) error {
	for id, n := range owing {
		_, err := cold.Timer(ctx, id)
		switch {
		case errors.Is(err, engine.ErrNotFound):
			e.strays += n
		case errors.As(err, new(*engine.Damage)): // it is not listed either, see storedLines
		case err != nil:
			return fmt.Errorf("cannot look for timer %s: %w", id, err)
		}
	}
	return nil
}

func (e *export) storedRecords(ctx context.Context, cold engine.Cold) error {
	minutes, err := cold.LeftOut(ctx, 0, engine.MaxDue)
	if err != nil {
		return fmt.Errorf("cannot read the incomplete minutes: %w", err)
	}
	for some := range slices.Chunk(minutes, aPage) {
		l := struct {
			LeftOut []int64 `json:"left_out"`
		}{some}
		if err := e.lines.Encode(l); err != nil {
			return err
		}
	}
	f := engine.TaskFilter{App: e.filter.App}
	for before := (engine.Key{}); ; {
		ts, next, err := cold.Tasks(ctx, f, before, aPage)
		if err != nil {
			return fmt.Errorf("cannot read the records: %w", err)
		}
		for _, t := range ts {
			r := struct {
				Record *recordLine `json:"record"`
			}{recordLineOf(t)}
			if err := e.lines.Encode(r); err != nil {
				return err
			}
			e.records++
		}
		if before = next; before == (engine.Key{}) {
			return nil
		}
	}
}

// parseLabels reads a label selector: team=a,env!=prod.
func parseLabels(s string) (ms []engine.LabelMatch, err error) {
	for term := range strings.SplitSeq(s, ",") {
		if term = strings.TrimSpace(term); term == "" && s == "" {
			return nil, nil
		}
		k, v, ok := strings.Cut(term, "=")
		m := engine.LabelMatch{Value: v}
		m.Key, m.Not = strings.CutSuffix(k, "!")
		if !ok || m.Key == "" {
			return nil, fmt.Errorf("%q is not KEY=VALUE or KEY!=VALUE", term)
		}
		ms = append(ms, m)
	}
	return ms, nil
}

package inspect

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"xtimer/engine"
	"xtimer/engine/fair"
	"xtimer/engine/flow"
	"xtimer/engine/plan"
	"xtimer/engine/resident"
)

// WaitingPlace is how far a reader has come in what waits for a flow key in one process. The zero
// one is the beginning.
type WaitingPlace struct {
	Life  int64        // of the process: when it started
	Seen  fair.Seen    // of what is in memory
	Rows  bool         `json:",omitempty"` // all that came up to UpTo was seen; then come the rows after After
	UpTo  uint64       `json:",omitempty"`
	After engine.Place `json:",omitzero"`
	// Lanes had rows when what was in memory was listed; nil: any lane of the key may have had.
	Lanes []engine.Lane `json:",omitempty"`
	End   bool          `json:",omitempty"` // nothing more comes
}

// Waiter is a task of the list.
type Waiter struct {
	Task *engine.Task `json:"-"`
	// Encoded is the task for another process; see Encode.
	Encoded []byte `json:",omitempty"`
	Rank    int64  // of those in memory the one of the lesser rank goes first; they go before the rows
	Row     int
	Came    uint64
	Stored  bool
	UpTo    uint64
	At      engine.Place
}

// WaitingPage is a page of what waits for a flow key in one process.
type WaitingPage struct {
	Waiters []Waiter
	From    WaitingPlace // before the first one
	Next    WaitingPlace // where the next page begins
	// Estimate is when the calls may be made, by Unix time.
	Estimate flow.Estimate
}

// behind is the place behind the first so many tasks.
func (p *WaitingPage) behind(n int) WaitingPlace {
	if n == len(p.Waiters) {
		return p.Next
	}
	at := p.From
	for i := range n {
		at.pass(&p.Waiters[i])
	}
	if at.Rows {
		at.Lanes = p.Next.Lanes
	}
	return at
}

// pass moves a place behind a task.
func (p *WaitingPlace) pass(w *Waiter) {
	if !w.Stored {
		p.Seen[w.Row] = w.Came
		return
	}
	p.Rows, p.UpTo, p.After = true, w.UpTo, w.At
}

const (
	// mostLookedAt is how many rows a page looks at.
	mostLookedAt = 4096
	// rowsLookedFor is for how long rows are looked for.
	rowsLookedFor = 100 * time.Millisecond
	// mostNamedLanes is how many lanes a place names.
	mostNamedLanes = 32
)

// Waiting lists what waits for a flow key of an app in this process, in the order in which it goes:
// what is in memory, and after that the rows for which there is no room, by the instant at which
// they might have been tried. A page may be short and still have a next one.
func (r *Reader) Waiting(ctx context.Context, app, key string, from WaitingPlace, limit int) (WaitingPage, error) {
	if from.Life != r.memory.StartedAt {
		from = WaitingPlace{Life: r.memory.StartedAt} // of a former process, whose numbers say nothing here
	}
	l := waitingList{r: r, app: app, key: key, limit: limit, now: r.now()}
	l.From, l.Next, l.Estimate = from, from, r.memory.EstimateOf(app, key)
	if from.End {
		return l.WaitingPage, nil
	}
	lanes := l.queued()
	if from.Rows { // of any of these lanes, for their rows may have come into memory since
		ids := from.Lanes
		if ids == nil {
			ids = r.memory.LanesFor(app, key)
		}
		for _, id := range ids {
			lanes = append(lanes, laneRows{StoredLane: resident.StoredLane{ID: id, After: from.After}})
		}
	}
	var err error
	if l.Next.Rows {
		err = l.rows(ctx, lanes)
	}
	return l.WaitingPage, err
}

// waitingList makes a page.
type waitingList struct {
	WaitingPage
	r        *Reader
	app, key string
	limit    int
	now      int64
}

// queued lists what waits in the queue, if that is not listed yet. When it is, lanes are those with
// rows that are not in memory.
func (l *waitingList) queued() (lanes []laneRows) {
	looked := false
	for p := &l.Next; !p.Rows; {
		ws, upTo, all := l.r.memory.WaitingFor(l.app, l.key, &p.Seen, l.limit-len(l.Waiters))
		for _, w := range ws {
			x := Waiter{Rank: w.Rank, Row: w.Row, Came: w.Came}
			if p.pass(&x); w.Task != nil {
				x.Task = Listed(w.Task)
				l.Waiters = append(l.Waiters, x)
			}
		}
		switch {
		case all && looked:
			p.Rows, p.UpTo = true, upTo
		case all: // then once more: what comes into memory meanwhile is no row of these
			looked, p.Lanes = true, nil
			for i, x := range l.r.memory.StoredFor(l.app, l.key) {
				lanes = append(lanes, laneRows{StoredLane: x})
				if i == 0 || x.After.Compare(p.After) < 0 {
					p.After = x.After
				}
				p.Lanes = append(p.Lanes, x.ID)
			}
			if len(p.Lanes) > mostNamedLanes {
				p.Lanes = nil
			}
		case len(l.Waiters) == l.limit:
			return nil
		}
	}
	return lanes
}

// laneRows are the rows of a lane, as far as they were read.
type laneRows struct {
	resident.StoredLane
	read []engine.Owed
	defs map[engine.TimerID]*engine.Timer
	end  bool
}

// place is where the next row may be, at the earliest.
func (x *laneRows) place() engine.Place {
	if len(x.read) > 0 {
		return x.read[0].Place()
	}
	return x.After
}

// rows lists the rows of lanes, merged by their places.
func (l *waitingList) rows(ctx context.Context, lanes []laneRows) error {
	read := l.r.memory.Reads.Begin()
	defer read.End()
	p, begun := &l.Next, time.Now()
	for looked := 0; looked < mostLookedAt && time.Since(begun) < rowsLookedFor; {
		lanes = slices.DeleteFunc(lanes, func(x laneRows) bool { return x.end && len(x.read) == 0 })
		if p.End = len(lanes) == 0; p.End || len(l.Waiters) == l.limit {
			return nil
		}
		next := &lanes[0]
		for i := range lanes {
			if lanes[i].place().Compare(next.place()) < 0 {
				next = &lanes[i]
			}
		}
		if len(next.read) == 0 {
			if err := l.load(ctx, next); err != nil {
				return err
			}
			continue
		}
		looked++
		o := next.read[0]
		next.read = next.read[1:]
		w := Waiter{Stored: true, UpTo: p.UpTo, At: o.Place()}
		p.pass(&w)
		t, err := l.atRow(ctx, next.defs[o.Key.Timer], &o, read)
		if err != nil {
			return err
		}
		if t != nil {
			w.Task = t
			l.Waiters = append(l.Waiters, w)
		}
	}
	return nil
}

// load reads the next rows of a lane, and their timers.
func (l *waitingList) load(ctx context.Context, x *laneRows) error {
	rows, err := l.r.cfg.Cold.OwedIn(ctx, l.r.memory.Owned(), x.ID, x.After, l.now, definitionsAtOnce)
	if err != nil {
		return err
	}
	x.defs = map[engine.TimerID]*engine.Timer{}
	for i := range rows {
		x.defs[rows[i].Key.Timer] = nil
	}
	ids := slices.Collect(maps.Keys(x.defs))
	ts, _, err := l.r.Definitions(ctx, ids)
	if err != nil {
		return err
	}
	for i, t := range ts {
		x.defs[ids[i]] = t
	}
	if x.read, x.end = rows, len(rows) < definitionsAtOnce; len(rows) > 0 {
		x.After = rows[len(rows)-1].Place()
	}
	return nil
}

// atRow is the task of a row that waits for the key, nil for none. That of a range has its first
// due, and says how many there are.
func (l *waitingList) atRow(ctx context.Context, def *engine.Timer, o *engine.Owed, read *resident.Read) (*engine.Task, error) {
	if def == nil || o.Damaged != nil || def.Generation != o.Generation || def.App != l.app || !slices.Contains(def.Flow.Keys(), l.key) || def.IsForced(o) {
		return nil, nil
	}
	t := l.r.memory.AtRow(def, o, l.Next.UpTo, read)
	if t == nil {
		return nil, nil
	}
	if o.To != 0 {
		if l.r.memory.IsTurning(o.Key) {
			return nil, nil // the wheel goes through it
		}
		p, err := plan.Of(def)
		if err != nil {
			return nil, err
		}
		if t.Count, err = l.r.waitingDues(ctx, &p, o, l.now); err != nil || t.Count == 0 {
			return nil, err
		}
		t.DueLast, _ = p.Prev(min(o.To, l.now))
	}
	return Listed(t), nil
}

// WaitingList merges the pages of several processes, each in its own order.
type WaitingList struct {
	key      string
	pages    []WaitingPage
	names    []string
	taken    []int
	listed   int // before the page, and of it
	estimate flow.Estimate
}

// WaitingCursor is how far a reader has come in the list of several processes, by their names.
type WaitingCursor struct {
	App, Key string
	Listed   int
	Moves    uint64 `json:",omitempty"` // of shards among the nodes, before the first page
	Of       map[string]WaitingPlace
}

// NewWaitingList begins a page of the list behind a cursor.
func NewWaitingList(c *WaitingCursor) *WaitingList {
	return &WaitingList{key: c.Key, listed: c.Listed, estimate: flow.Estimate{Next: flow.Never}}
}

// Add adds the page of a process.
func (l *WaitingList) Add(name string, p WaitingPage) {
	l.names, l.pages, l.taken = append(l.names, name), append(l.pages, p), append(l.taken, 0)
	if p.Estimate.Next < l.estimate.Next {
		l.estimate = p.Estimate
	}
}

// Take is the next task, nil if there is none.
func (l *WaitingList) Take() *engine.Task {
	first := -1
	for i := range l.pages {
		if w := l.head(i); w != nil && (first < 0 || w.before(l.head(first))) {
			first = i
		}
	}
	if first < 0 {
		return nil
	}
	t := l.head(first).Task
	l.taken[first]++
	l.expect(t)
	l.listed++
	return t
}

func (l *WaitingList) head(i int) *Waiter {
	if l.taken[i] == len(l.pages[i].Waiters) {
		return nil
	}
	return &l.pages[i].Waiters[l.taken[i]]
}

// before reports whether a task goes before one of another process.
func (w *Waiter) before(o *Waiter) bool {
	switch {
	case w.Stored != o.Stored:
		return o.Stored
	case w.Stored:
		return w.At.Compare(o.At) < 0
	}
	return w.Rank < o.Rank
}

// expect says about when a task may be called that so many others go before. What holds it besides
// the key may hold it for longer.
func (l *WaitingList) expect(t *engine.Task) {
	at := l.estimate.After(l.listed)
	own := t.Reason == "" || strings.HasSuffix(t.Reason, " "+l.key)
	switch ms := at.Milliseconds(); {
	case at == flow.Never && own:
		t.NotBefore = 0
	case at == flow.Never:
	case own:
		t.NotBefore = ms
	case t.NotBefore != 0:
		t.NotBefore = max(t.NotBefore, ms)
	}
}

// Cursor is where the next page begins; more is false at the end.
func (l *WaitingList) Cursor(former *WaitingCursor) (c WaitingCursor, more bool) {
	c = *former
	c.Listed, c.Of = l.listed, map[string]WaitingPlace{}
	maps.Copy(c.Of, former.Of)
	for i, p := range l.pages {
		at := p.behind(l.taken[i])
		c.Of[l.names[i]] = at
		more = more || !at.End
	}
	return c, more
}

// Encode has the tasks of a page encoded for another process, and ends the page at about so many
// bytes.
func (p *WaitingPage) Encode(most int) {
	bytes := 0
	for i := range p.Waiters {
		w := &p.Waiters[i]
		w.Encoded = engine.EncodeTask(w.Task)
		if bytes += len(w.Encoded); bytes > most {
			p.Next, p.Waiters = p.behind(i+1), p.Waiters[:i+1]
			return
		}
	}
}

// Decode reads the tasks of a page of another process.
func (p *WaitingPage) Decode() (err error) {
	for i := range p.Waiters {
		if p.Waiters[i].Task, err = engine.DecodeTask(p.Waiters[i].Encoded); err != nil {
			return err
		}
	}
	return nil
}

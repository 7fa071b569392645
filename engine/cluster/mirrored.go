package cluster

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"xtimer/engine"
)

const (
	// copyEvery is how long a finished task waits at most for others to be copied with it.
	copyEvery = 20 * time.Millisecond
	// lookEvery is how often the mirror is asked whether it has what was copied, while nothing is finished.
	lookEvery = time.Second
	// copyAgain is the pause after a copy that failed.
	copyAgain = 500 * time.Millisecond
	// copyBytes is how much one Append copies, more or less.
	copyBytes = 1 << 20
	// copyTold is how often it is logged that nothing can be copied.
	copyTold = 30 * time.Second
)

// mirrorBytes is how much of a life is in its mirror, or waits for it: while nothing is
// settled for long, the oldest groups go. A variable for tests.
var mirrorBytes = 64 << 20

// Mirrored is the journal of a life whose finished tasks are copied to a mirror, without the
// bodies of responses, until the journal forgets them. Nothing waits for the mirror: what
// cannot be copied is called again by the node that takes over, as without a mirror. Where the
// mirror has lost what was copied, all is copied again, 1.5 s after the loss at the latest.
//
//	Finish   the journal's, then noted      under one lock, which no Append holds
//	Run      each 20 ms in which there is something: one group, one Append
//	Forget   the journal's, then the groups that are forgotten go with the next Append
type Mirrored struct {
	engine.Journal
	mirror engine.Mirror
	life   uint64
	log    *slog.Logger
	told   time.Time     // when it was logged last; of Run
	wake   chan struct{} // cap 1

	mu      sync.Mutex // guards all below
	next    group      // that is not closed yet
	groups  []group    // closed, and not forgotten; numbered one after another
	copied  uint64     // the number of the last one that the mirror has
	bytes   int        // of next and of groups
	asks    bool       // an Append is due though nothing is to be copied: groups are to go, or to be looked for
	failing time.Time  // since when nothing was copied; zero: the last Append went well
}

// group is a group with its place in the journal.
type group struct {
	engine.MirrorGroup
	last  engine.Position // of its records
	bytes int
	since time.Time // of its first record
}

// NewMirrored returns the journal of a life with a mirror.
func NewMirrored(j engine.Journal, m engine.Mirror, life uint64, log *slog.Logger) *Mirrored {
	return &Mirrored{
		Journal: j, mirror: m, life: life, log: log, wake: make(chan struct{}, 1),
		next: group{MirrorGroup: engine.MirrorGroup{N: 1}},
	}
}

// Finish notes an outcome.
func (m *Mirrored) Finish(task []byte) engine.Position {
	p := m.Journal.Finish(task)
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.next.Tasks) == 0 {
		m.next.since = time.Now()
		m.rouse()
	}
	m.next.Tasks = append(m.next.Tasks, bytes.Clone(task))
	m.next.last = max(m.next.last, p)
	m.next.bytes += len(task)
	m.bytes += len(task)
	n := 0
	for over := m.bytes - mirrorBytes; over > 0 && n < len(m.groups); n++ {
		over -= m.groups[n].bytes
	}
	m.drop(n)
	return p
}

// Forget drops what was appended before p.
func (m *Mirrored) Forget(p engine.Position, w *engine.Watermarks) error {
	if err := m.Journal.Forget(p, w); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n := slices.IndexFunc(m.groups, func(g group) bool { return g.last >= p })
	if n < 0 {
		n = len(m.groups)
	}
	m.drop(n)
	return nil
}

// drop drops the oldest groups; the caller has the lock.
func (m *Mirrored) drop(n int) {
	if n == 0 {
		return
	}
	for i := range n {
		m.bytes -= m.groups[i].bytes
	}
	m.groups = slices.Delete(m.groups, 0, n)
	m.asks = true
	m.rouse()
}

func (m *Mirrored) rouse() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Lag is how long the oldest task has been finished that is not copied, or for how long
// nothing could be copied.
func (m *Mirrored) Lag() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	since := m.failing
	if i := m.waiting(); since.IsZero() && i < len(m.groups) {
		since = m.groups[i].since
	} else if since.IsZero() && len(m.next.Tasks) > 0 {
		since = m.next.since
	}
	if since.IsZero() {
		return 0
	}
	return time.Since(since)
}

// waiting is the index of the first group that is not copied; the caller has the lock.
func (m *Mirrored) waiting() int {
	if len(m.groups) == 0 || m.groups[0].N > m.copied {
		return 0
	}
	return int(m.copied + 1 - m.groups[0].N)
}

// Run commits what is appended, and copies it, until ctx ends.
func (m *Mirrored) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var copying sync.WaitGroup
	copying.Go(func() { m.copies(ctx) })
	err := m.Journal.Run(ctx)
	cancel()
	copying.Wait()
	return err
}

// copies copies until ctx ends, and then what is left, if the mirror takes it at once.
func (m *Mirrored) copies(ctx context.Context) {
	pause := copyEvery
	for last := false; !last; {
		select {
		case <-ctx.Done():
		case <-m.wake:
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		case <-time.After(lookEvery):
			m.look()
		}
		last, pause = ctx.Err() != nil, copyEvery
		if err := m.copy(context.WithoutCancel(ctx)); err != nil {
			pause = copyAgain
			m.rouse()
			if now := time.Now(); now.Sub(m.told) > copyTold {
				m.told = now
				m.log.Warn("cannot copy what was finished to the mirror; if this node is killed now, the other nodes call it again", "error", err)
			}
		}
	}
}

// look has the next copy ask the mirror what it has, if it is to have anything.
func (m *Mirrored) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asks = m.asks || len(m.groups) > 0
}

// copy brings the mirror up to date.
func (m *Mirrored) copy(ctx context.Context) error {
	m.close()
	for {
		groups, first, last, ok := m.due()
		if !ok {
			return nil
		}
		whole, err := m.mirror.Append(ctx, m.life, groups, first, last)
		if err == nil && !whole {
			err = errMirrorLost
		}
		m.answered(groups, err)
		if err != nil {
			return err
		}
	}
}

// close closes the group that finished tasks are noted in.
func (m *Mirrored) close() {
	m.mu.Lock()
	g := m.next
	m.next = group{MirrorGroup: engine.MirrorGroup{N: g.N}}
	m.mu.Unlock()
	if len(g.Tasks) == 0 {
		return
	}
	full := g.bytes
	g.bytes = 0
	for i, b := range g.Tasks {
		g.Tasks[i] = withoutResponses(b)
		g.bytes += len(g.Tasks[i])
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next.N++
	m.bytes += g.bytes - full
	m.groups = append(m.groups, g)
}

// withoutResponses is a record without the bodies of responses.
func withoutResponses(b []byte) []byte {
	t, err := engine.DecodeTask(b)
	if err != nil {
		return b // who reads it passes over it
	}
	for i := range t.Attempts {
		t.Attempts[i].Response = nil
	}
	return engine.EncodeTask(t)
}

// due returns the groups to copy next, and the numbers of the first and the last group that the
// mirror is to have then. ok is false if there is nothing to do.
func (m *Mirrored) due() (groups []engine.MirrorGroup, first, last uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	first = m.next.N
	if len(m.groups) > 0 {
		first = m.groups[0].N
	}
	keep := m.waiting()
	for size := 0; keep < len(m.groups) && size < copyBytes; keep++ {
		size += m.groups[keep].bytes
		groups = append(groups, m.groups[keep].MirrorGroup)
	}
	ok = len(groups) > 0 || m.asks || !m.failing.IsZero()
	m.asks = false
	return groups, first, first + uint64(keep) - 1, ok
}

var errMirrorLost = errors.New("the mirror has lost what was copied to it; it is copied again")

// answered notes how an Append of groups went. After a failure all groups are copied again: a replica that
// takes over from a server lacks the last writes.
func (m *Mirrored) answered(groups []engine.MirrorGroup, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		if m.failing.IsZero() {
			m.failing = time.Now()
		}
		m.copied = 0
		return
	}
	m.failing = time.Time{}
	if len(groups) == 0 {
		return
	}
	m.copied = groups[len(groups)-1].N
}

package scheduler

import (
	"context"
	"sync"

	"xtimer/engine"
)

// A tier has a limit of time for a transaction, and what gathers has none: after an hour
// without the cold tier there are millions of outcomes, and a start or a change of one
// timer may find as many rows. They are stored in pieces of at most mostRows rows. A
// piece that did not fit halves those that follow, down to fewestRows: the tier may be
// behind a slow link, or its machine busy. A piece of that size that did fit makes them
// an eighth larger.
const (
	mostRows   = 50_000
	fewestRows = 500
)

// pieces is how large they are, for all who store any.
type pieces struct {
	mu   sync.Mutex
	rows int
}

// of is how many rows to store at once, most at most.
func (p *pieces) of(most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return min(p.rows, most)
}

// heard notes how a piece of so many rows went.
func (p *pieces) heard(rows int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil && rows >= p.rows:
		p.rows = min(p.rows+p.rows/8, mostRows)
	case err != nil && rows > fewestRows: // else it failed for another reason
		p.rows = max(min(p.rows, rows)/2, fewestRows)
	}
}

// settlePieces stores a settlement, its watermarks last: until they stand, the
// journal still has all of it, and the next start would store the same again. The
// minutes of records that are left out come first: the rows of these go later.
func (e *Scheduler) settlePieces(ctx context.Context, s *engine.Settlement) error {
	for again := false; ; {
		piece, rest := *s, engine.Settlement{}
		rows := e.pieces.of(mostRows)
		if whole := len(s.Tasks) + len(s.Owe) + len(s.Pay); whole <= rows {
			rows = whole
		} else {
			rest = piece
			room := rows
			piece.Marks, rest.LeftOut = nil, nil
			piece.Tasks, rest.Tasks = cut(s.Tasks, &room)
			piece.Owe, rest.Owe = cut(s.Owe, &room)
			piece.Pay, rest.Pay = cut(s.Pay, &room)
		}
		err := e.cfg.Cold.Settle(ctx, &piece)
		e.pieces.heard(rows, err)
		switch {
		case err == nil && len(rest.Tasks)+len(rest.Owe)+len(rest.Pay) == 0:
			return nil
		case err == nil:
			*s, again = rest, false
		case again || ctx.Err() != nil || rows <= fewestRows:
			return err
		default:
			again = true // with a smaller one
		}
	}
}

// cut takes as many as there is room for.
func cut[T any](list []T, room *int) (head, rest []T) {
	n := min(len(list), *room)
	*room -= n
	return list[:n:n], list[n:]
}

package engine

import "context"

// Mirror keeps copies of what the journals of lives tell of finished tasks, until that is
// settled, for whoever takes the shards of a life over. A copy is true for ever: the key of a
// task never comes again, and a later record of it has more attempts. So a Mirror may lose
// anything at any time; a loss costs calls that are made again, never a fire. tier/memory and
// tier/redis implement Mirror; tier/tiertest tests its promises.
type Mirror interface {
	// Append adds groups to those of a life and drops the groups before first. It reports whether the
	// mirror then has all groups from first to last: it may have lost some, and then earlier groups may
	// stay. Groups that begin with first take the place of all groups of the life. A group that is there
	// is not added again. If first is last+1, nothing is kept. Append bounds its own time.
	Append(ctx context.Context, life uint64, groups []MirrorGroup, first, last uint64) (whole bool, err error)
	// Read yields the tasks of all groups of a life that are whole, in the order in which they
	// were appended. The bytes are the caller's to keep. What was yielded before an error
	// stands. Read bounds its own time.
	Read(ctx context.Context, life uint64, yield func(task []byte) error) error
}

// MirrorGroup is what one life finished at about the same time.
type MirrorGroup struct {
	N     uint64 // of a life: 1, 2, …
	Tasks [][]byte
}

package engine

// What becomes of the dues that a pause held, as whoever ends it says: all are called, of each
// timer the last, or none.
const (
	BacklogCall   = "call"
	BacklogLatest = "latest"
	BacklogSkip   = "skip"
)

// Backlog says what becomes of the dues that a pause held, when somebody has ended it. Its
// instants are in Unix ms, 0 for none.
type Backlog struct {
	Skip   int64 // the dues up to then are not called
	Latest int64 // of the later dues of a timer, up to then, only the last that waits is called
}

// UpTo is the last due that the backlog decides about.
func (b Backlog) UpTo() int64 { return max(b.Skip, b.Latest) }

// And is what two backlogs say together.
func (b Backlog) And(o Backlog) Backlog {
	return Backlog{max(b.Skip, o.Skip), max(b.Latest, o.Latest)}
}

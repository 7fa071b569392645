package resident

import "fmt"

// State is where a task in memory stands. Its way:
//
//	     due, row             row of a later time
//	        │                          │
//	        ▼        its time          ▼
//	     Queued ◄────────────────── Retrying ◄──────────────┐
//	┌───── │ ▲ ───── not yet ─────────► ▲                   │
//	│      │ │                          │ not sent          │
//	│      │ └── the definition is ─┐   │                   │
//	│      ▼          another       │   │                   │ to be tried again
//	│   Preparing ──────────────────┴───┤                   │
//	│      │ ▲                          │                   │
//	│      ▼ │ no byte was sent         │                   │
//	│   Writing ────────────────────────┤ (a panic)         │
//	│      │ first byte                 │                   │
//	│      ▼                            ▼                   │
//	│   Sending ──────────────────────────────────────────► ┤
//	│                                                       ▼
//	└───────────────────────────────────────────────────► Done ──► Gone
//
// and what it waits for beside its turn:
//
//	Queued, Preparing ──► Frozen    a change of its timer is being committed  ──► Queued
//	Queued ────────────► Frozen     its backlog is being decided              ──► Queued
//	Queued ────────────► Parked     another task of its timer (overlap: queue) ──► Queued
//	Queued ────────────► Leaving    its lane has no room: its row is stored    ──► Gone, or Queued
//
// A change ends what is not in a call: Done when it has a row or attempts, else Gone. A
// retry that is far leaves memory: Gone. All leave with their shard: Gone.
type State uint8

const (
	isNew     State = iota
	Queued          // in the queue
	Frozen          // taken from the queue while a change was being committed
	Parked          // waits for another task of its timer (overlap: queue)
	Preparing       // an attempt runs, of which no byte was sent
	Writing         // … whose first bytes are being written
	Sending         // … whose first byte was sent
	Retrying        // its next attempt lies in the wheel
	Leaving         // its lane has no room: it goes when its row is stored
	Done            // over, and in memory until that is settled
	Gone            // not in memory any more
	states
)

var stateNames = [states]string{"new", "queued", "frozen", "parked", "preparing", "writing", "sending", "retrying", "leaving", "done", "gone"}

func (s State) String() string { return stateNames[s] }

// moves has for each state those that may follow it.
var moves = [states][]State{
	isNew:     {Queued, Retrying},
	Queued:    {Frozen, Parked, Preparing, Retrying, Leaving, Done, Gone},
	Frozen:    {Queued, Done, Gone},
	Parked:    {Queued, Done, Gone},
	Preparing: {Queued, Frozen, Writing, Retrying, Done, Gone},
	Writing:   {Preparing, Sending, Retrying, Done, Gone},
	Sending:   {Retrying, Done, Gone},
	Retrying:  {Queued, Done, Gone},
	Leaving:   {Queued, Done, Gone},
	Done:      {Gone},
	Gone:      {},
}

// mayMove is moves as a table of bits.
var mayMove = func() (table [states]uint16) {
	for from, tos := range moves {
		for _, to := range tos {
			table[from] |= 1 << to
		}
	}
	return table
}()

// move takes a task to another state. mu is held.
func (t *Task) move(to State) {
	if mayMove[t.state]&(1<<to) == 0 {
		panic(fmt.Sprintf("BUG: task %s is %v and becomes %v", t.Key, t.state, to))
	}
	if t.state == Parked {
		t.timer.parked--
	}
	if t.state = to; to == Parked {
		t.timer.parked++
	}
}

// inCall reports whether bytes of a call of it may have been sent, or are being sent.
func (t *Task) inCall() bool { return t.state == Writing || t.state == Sending }

// rowState is how a task stands in the cold tier.
type rowState uint8

const (
	noRow      rowState = iota
	rowStale            // its row does not say how it stands
	rowCurrent          // … does
	rowShared           // one row stands for it and for other dues of its timer: see sharedRow
)

// hasRow reports whether it has a row of its own, or is to have one.
func (t *Task) hasRow() bool { return t.row == rowStale || t.row == rowCurrent }

// touch notes that its row, if it has one, does not say any more how it stands.
func (t *Task) touch() {
	if t.row == rowCurrent {
		t.row = rowStale
	}
}

// past is what is known of attempts that a former process may have made.
type past uint8

const (
	noPast     past = iota
	mayRepeat       // its attempts may have been made before
	wasUnended      // … and one is known to have begun, and not how it ended
)

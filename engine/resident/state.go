package resident

// State is where a task in memory stands.
type State uint8

const (
	Queued    State = iota // in the queue
	Frozen                 // taken from the queue while a change was being committed
	Parked                 // waits for another task of its timer (overlap: queue)
	Preparing              // an attempt runs, of which no byte was sent
	Sending                // an attempt runs
	Retrying               // its next attempt lies in the wheel
	Leaving                // its lane has no room: it goes when its row is stored
	Done
)

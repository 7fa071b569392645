package fair

import "sync/atomic"

// Item is a value that can wait in a lane. The owner sets the exported fields, and
// leaves them alone while the item waits. An item may wait again as soon as its
// value was handed to a worker.
type Item[T any] struct {
	Value    T
	Lane     *Lane[T]
	Ready    int64  // since when it could run (Unix ms)
	Due      int64  // its place in the order of a gate that keeps one (Unix ms); 0: Ready
	Priority uint8  // 0…9
	Bytes    uint32 // what it takes in a call of many items; for a BatchLane

	waits          bool
	marked         bool        // it is in Lane.marks
	holds          atomic.Bool // gated.kept is not empty; read without the lock of the queue
	ofLane         uint32      // its number among the items of its lane
	former, latter *Item[T]
	gated          *gated[T] // nil: its lane has no gates, and had none
	came           uint64    // its number: the greater, the later it came to the queue
}

// fifo is a list of items through the items themselves: any of them can leave at
// the cost of a few pointers, and an empty one keeps no memory.
type fifo[T any] struct{ first, last *Item[T] }

func (f *fifo[T]) push(it *Item[T]) {
	it.former = f.last
	if f.last != nil {
		f.last.latter = it
	} else {
		f.first = it
	}
	f.last = it
}

func (f *fifo[T]) remove(it *Item[T]) {
	if it.former != nil {
		it.former.latter = it.latter
	} else {
		f.first = it.latter
	}
	if it.latter != nil {
		it.latter.former = it.former
	} else {
		f.last = it.former
	}
	it.former, it.latter = nil, nil
}

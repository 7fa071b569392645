package local

import (
	"errors"
	"runtime"

	"github.com/cockroachdb/pebble/v2"
)

// scan walks the keys in [from, to) of a database or a snapshot until f is
// false or fails. What f gets is only valid in f.
func scan(r pebble.Reader, from, to []byte, f func(k, v []byte) (more bool, err error)) error {
	return walk(r, from, to, (*pebble.Iterator).First, (*pebble.Iterator).Next, f)
}

// scanBack is scan from the last key to the first.
func scanBack(r pebble.Reader, from, to []byte, f func(k, v []byte) (more bool, err error)) error {
	return walk(r, from, to, (*pebble.Iterator).Last, (*pebble.Iterator).Prev, f)
}

// yieldEvery is after how many keys a reader or a writer of many lets others go
// first: calls that are due must not wait for a list that somebody looks at.
const yieldEvery = 64

func walk(r pebble.Reader, from, to []byte, first, next func(*pebble.Iterator) bool, f func(k, v []byte) (bool, error)) error {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	more := true
	for n, ok := 1, first(it); ok && more && err == nil; n, ok = n+1, next(it) {
		if n%yieldEvery == 0 {
			runtime.Gosched()
		}
		var v []byte
		if v, err = it.ValueAndErr(); err == nil {
			more, err = f(it.Key(), v)
		}
	}
	return errors.Join(err, it.Close())
}

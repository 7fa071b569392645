package local

import (
	"errors"

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

func walk(r pebble.Reader, from, to []byte, first, next func(*pebble.Iterator) bool, f func(k, v []byte) (bool, error)) error {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return err
	}
	more := true
	for ok := first(it); ok && more && err == nil; ok = next(it) {
		var v []byte
		if v, err = it.ValueAndErr(); err == nil {
			more, err = f(it.Key(), v)
		}
	}
	return errors.Join(err, it.Close())
}

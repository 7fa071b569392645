package engine

import (
	"errors"
	"fmt"
)

// Damage is a tier's error about one row that cannot be right: its bytes cannot be read,
// or they are those of another row. All others can be read on.
type Damage struct {
	Row string // where it stands, in the words of the tier
	// Key is that of the record, or has the timer of a definition; zero for other rows.
	Key Key
	Err error
}

func (d *Damage) Error() string { return d.Row + " is damaged: " + d.Err.Error() }

// Unwrap gives what is wrong with the row.
func (d *Damage) Unwrap() error { return d.Err }

// DamagedRecord returns the damage if a page of history, that of the records before a key, has
// failed on a record that cannot be read. The next page is that of the records before the
// damaged one. DamagedRecord returns nil for every other error.
func DamagedRecord(err error, before Key) *Damage {
	var d *Damage
	if !errors.As(err, &d) || d.Key == (Key{}) || before != (Key{}) && d.Key.Compare(before) >= 0 {
		return nil
	}
	return d
}

// ReadOwed reads the row of owed that is stored under a key. One that cannot be read, or is
// the row of another task, has Damaged set, and of it only the key is right.
func ReadOwed(k Key, stored []byte) Owed {
	o, err := DecodeOwed(stored)
	if err == nil && o.Key != k {
		err = fmt.Errorf("it is the row of task %s", o.Key)
	}
	if err != nil {
		return Owed{Key: k, Damaged: &Damage{Row: fmt.Sprintf("the row of pending task %s", k), Key: k, Err: err}}
	}
	return o
}

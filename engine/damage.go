package engine

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

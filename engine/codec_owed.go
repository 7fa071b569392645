package engine

import "encoding/binary"

// AppendOwed appends the stored form of o to b.
func AppendOwed(b []byte, o *Owed) []byte {
	if o.Damaged != nil {
		panic("BUG: a row that could not be read is to be stored")
	}
	version := byte(2) // as former programs read it
	switch {
	case o.Held != 0:
		version = 4
	case o.OneShot:
		version = 3
	}
	b = append(b, version)
	b = putUint(b, uint64(o.Key.Timer))
	b = putInt(b, o.Key.Due)
	b = putInt(b, o.To)
	b = putUint(b, uint64(o.Generation))
	b = append(b, byte(o.Origin))
	b = putBool(b, o.Begun)
	b = putInt(b, o.NotBefore)
	b = binary.LittleEndian.AppendUint64(b, uint64(o.Lane))
	if version >= 3 {
		b = putBool(b, o.OneShot)
	}
	if version >= 4 {
		b = putInt(b, o.Held)
	}
	b = putBool(b, o.Task != nil)
	if o.Task != nil {
		b = AppendTask(b, o.Task)
	}
	return b
}

// DecodeOwed reads what AppendOwed wrote.
func DecodeOwed(b []byte) (Owed, error) {
	r := reader{b: b}
	version := r.version("owed row", owedVersion)
	o := Owed{Key: Key{TimerID(r.uint()), r.int()}, To: r.int(), Generation: uint32(r.uint())}
	o.Origin = Origin(r.enum(len(originNames)))
	o.Begun, o.NotBefore = r.bool(), r.int()
	if version >= 2 {
		o.Lane = Lane(r.fixed())
	}
	if version >= 3 {
		o.OneShot = r.bool()
	}
	if version >= 4 {
		o.Held = r.int()
	}
	if r.bool() {
		o.Task = &Task{}
		r.task(o.Task)
	}
	return o, r.end("owed row")
}

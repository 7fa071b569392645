package local

import (
	"encoding/binary"
	"maps"
	"slices"

	"xtimer/engine"
)

// stats are the sums of the store. They are written with each commit, so that no
// reader has to count rows.
//
//	version seq enabled disabled finished
//	days (day, rows)…     owed rows by the day of their due
//	days (day, rows)…     owed ranges by the day they begin in
type stats struct {
	seq      uint64 // the number of the last commit
	timers   [3]int64
	owed     map[int64]int64
	ranges   map[int64]int64
	owedRows int64  // the sum of owed and ranges
	moves    uint64 // how many ranges were stored and removed since the start; it is not stored
}

func (st *stats) encode(b []byte) []byte {
	b = append(b, valueVersion)
	b = binary.AppendUvarint(b, st.seq)
	for _, n := range st.timers {
		b = binary.AppendUvarint(b, uint64(n))
	}
	for _, m := range []map[int64]int64{st.owed, st.ranges} {
		b = binary.AppendUvarint(b, uint64(len(m)))
		for _, d := range slices.Sorted(maps.Keys(m)) {
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(d)), uint64(m[d]))
		}
	}
	return b
}

func (st *stats) decode(b []byte) error {
	if len(b) == 0 || b[0] != valueVersion {
		return errShort
	}
	b = b[1:]
	bad := false
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			bad, b = true, nil
			return 0
		}
		b = b[n:]
		return v
	}
	st.seq = next()
	for i := range st.timers {
		st.timers[i] = int64(next())
	}
	st.owedRows = 0
	for _, m := range []map[int64]int64{st.owed, st.ranges} {
		for range next() {
			d, n := int64(next()), int64(next())
			if _, twice := m[d]; twice {
				bad = true
			}
			if bad {
				break
			}
			m[d] = n
			st.owedRows += n
		}
	}
	if bad || len(b) > 0 {
		return errShort
	}
	return nil
}

// count adds n rows like o to the sums.
func (st *stats) count(due, to int64, n int64) {
	m := st.owed
	if to != 0 {
		m = st.ranges
		st.moves++
	}
	d := max(due, 0) / day
	if m[d] += n; m[d] <= 0 {
		delete(m, d)
	}
	st.owedRows += n
}

// holds reports whether an owed row has its due in [from, to): the history of
// that time stays.
func (st *stats) holds(from, to int64) bool {
	for d := range st.owed {
		if d*day < to && (d+1)*day > from {
			return true
		}
	}
	return false
}

// hasRanges reports whether a range begins before the instant, or on its day.
func (st *stats) hasRanges(to int64) bool {
	for d := range st.ranges {
		if d*day < to {
			return true
		}
	}
	return false
}

func (st *stats) counts() engine.Counts {
	return engine.Counts{
		Enabled:  st.timers[engine.Enabled],
		Disabled: st.timers[engine.Disabled],
		Finished: st.timers[engine.Finished],
	}
}

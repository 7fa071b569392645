package local

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"xtimer/engine"
)

// The index of history by timer is cut in hours: an hour's entries lie together,
// so that compactions touch the last hour only, and a timer's records are found
// with one seek an hour. What one settle has of a timer in an hour is one entry:
// with a key for each record a fire cost 1.5 µs more.
//
//	hour (4), timer (8), ms of the first due in the hour (3)                   one record
//	hour (4), timer (8), ms of the first due in the hour (3), hash of the value (8)
//	                                               → the distances of those that follow
//
// The hash keeps entries apart that begin with the same due. Records of one-shots
// have no entry: their definitions, former versions among them, have the due. A
// definition that is removed leaves the entry.
const hour = 3_600_000

func byTimerKey(b []byte, k engine.Key) []byte {
	due := min(max(k.Due, 0), maxTime)
	b = appendID(binary.BigEndian.AppendUint32(append(b, kindByTimer), uint32(due/hour)), k.Timer)
	rest := uint32(due % hour)
	return append(b, byte(rest>>16), byte(rest>>8), byte(rest))
}

// readByTimer reads an entry: the first due of a timer, and those that follow.
func readByTimer(k, v []byte) (first engine.Key, more []int64, err error) {
	if len(k) != 16 && len(k) != 24 {
		return first, nil, damaged(k, errKey)
	}
	rest := int64(k[13])<<16 | int64(k[14])<<8 | int64(k[15])
	first = engine.Key{Timer: readID(k[5:]), Due: int64(binary.BigEndian.Uint32(k[1:]))*hour + rest}
	if len(v) == 0 || v[0] != valueVersion {
		return first, nil, damaged(k, errShort)
	}
	due := first.Due
	for v = v[1:]; len(v) > 0; {
		d, n := binary.Uvarint(v)
		if n <= 0 {
			return first, nil, damaged(k, errShort)
		}
		due += int64(d)
		more, v = append(more, due), v[n:]
	}
	return first, more, nil
}

// indexWrites appends the entries of records.
func indexWrites(ws []write, keys []engine.Key) []write {
	slices.SortFunc(keys, func(a, b engine.Key) int {
		return cmp.Or(cmp.Compare(a.Timer, b.Timer), cmp.Compare(a.Due, b.Due))
	})
	for len(keys) > 0 {
		first, n := keys[0], 1
		for n < len(keys) && keys[n].Timer == first.Timer && keys[n].Due/hour == first.Due/hour {
			n++
		}
		val := none
		key := byTimerKey(nil, first)
		due := first.Due
		for _, k := range keys[1:n] {
			if k.Due == due {
				continue
			}
			if len(val) == len(none) {
				val = slices.Clone(none)
			}
			val = binary.AppendUvarint(val, uint64(k.Due-due))
			due = k.Due
		}
		if len(val) > len(none) {
			h := fnv.New64a()
			_, _ = h.Write(val)
			key = h.Sum(key)
		}
		ws = append(ws, write{key: key, val: val})
		keys = keys[n:]
	}
	return ws
}

// byTimer walks the records of one timer from the newest down: hour by hour,
// with a seek in each that has any history.
func (p *taskPage) byTimer(ctx context.Context, before engine.Key) error {
	it, err := p.w.NewIter(&pebble.IterOptions{LowerBound: []byte{kindByTimer}, UpperBound: []byte{kindByTimer + 1}})
	if err != nil {
		return err
	}
	defer it.Close()
	id, end := p.f.Timer, before.Due // looked at: due < end
	if id < before.Timer {
		end++
	}
	shots, err := p.w.shots(id)
	if err != nil {
		return err
	}
	var seek []byte
	for end > max(p.f.From, 0) {
		shots = slices.DeleteFunc(shots, func(due int64) bool { return due >= end })
		at := int64(math.MinInt64) // an hour that begins here or later, of one-shots
		if len(shots) > 0 {
			at = shots[len(shots)-1] / hour * hour
		}
		seek = byTimerEnd(seek[:0], id, end)
		if it.SeekLT(seek) {
			k, _, err := readByTimer(it.Key(), none)
			if err != nil {
				return err
			}
			// The newest entry before may be of another timer. All entries of its
			// hour that lie before it have a lesser id, so ours are among them only
			// if our id is less.
			found := k.Due / hour * hour
			switch {
			case k.Timer == id:
				at = max(at, found)
			case at < found:
				if end = found; k.Timer > id {
					end += hour
				}
				if p.steps++; p.steps >= taskSteps {
					p.last = engine.Key{Timer: id, Due: end}
					return it.Error()
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				continue
			}
		}
		if err := it.Error(); err != nil {
			return err
		}
		if at == math.MinInt64 {
			break
		}
		more, err := p.hourOf(id, at, end, shots)
		if !more || err != nil {
			return err
		}
		end = at
	}
	p.ended = true
	return it.Error()
}

// hourOf looks at the records of a timer in the hour that begins at the instant,
// those due before end; more is false when the page ends here.
func (p *taskPage) hourOf(id engine.TimerID, at, end int64, shots []int64) (more bool, err error) {
	var dues []int64
	lo := byTimerKey(nil, engine.Key{Timer: id, Due: at})[:13]
	err = scan(p.w, lo, after(lo), func(k, v []byte) (bool, error) {
		first, rest, err := readByTimer(k, v)
		dues = append(append(dues, first.Due), rest...)
		return true, err
	})
	if err != nil {
		return false, err
	}
	indexed := slices.Clone(dues)
	slices.Sort(indexed)
	for _, due := range shots {
		if due >= at {
			dues = append(dues, due)
		}
	}
	slices.Sort(dues)
	for _, due := range slices.Backward(slices.Compact(dues)) {
		if due >= end {
			continue
		}
		if due < p.f.From {
			break
		}
		k := engine.Key{Timer: id, Due: due}
		t, err := p.w.task(k)
		if errors.Is(err, engine.ErrNotFound) {
			if _, ok := slices.BinarySearch(indexed, due); ok {
				return false, damagedRecord(recordKey(nil, k), errors.New("the index has it, and there is no record"))
			}
			continue // a one-shot that is not finished
		}
		if err != nil {
			return false, err
		}
		if !p.add(k, t) {
			return false, nil
		}
	}
	return true, nil
}

// shots are the dues that the one-shots among the versions of a timer have, in
// rising order.
func (w *view) shots(id engine.TimerID) ([]int64, error) {
	var dues []int64
	var t engine.Timer // the head of each: thousands may have bodies of half a MiB
	add := func(v []byte) (bool, error) {
		err := engine.DecodeTimerHead(v, &t)
		if err == nil && t.Schedule.OneShot() {
			dues = append(dues, lastDue(&t))
		}
		return true, err
	}
	if err := eachVersion(w, id, allVersions(id), add); err != nil {
		return nil, err
	}
	key := timerKey(nil, id)
	b, err := w.get(key)
	if b != nil && err == nil {
		if _, err = add(b); err != nil {
			err = damaged(key, err)
		}
	}
	slices.Sort(dues)
	return dues, err
}

// indexShot writes the entry of a one-shot's record when a version of it goes: the
// record may outlive the version, and nothing else has the due then.
func (g *group) indexShot(t *engine.Timer) error {
	if !t.Schedule.OneShot() {
		return nil
	}
	k := engine.Key{Timer: t.ID, Due: lastDue(t)}
	g.probe = recordKey(g.probe[:0], k)
	v, err := g.look(g.probe)
	if v != nil && err == nil {
		g.putAll(indexWrites(nil, []engine.Key{k}))
	}
	return err
}

// byTimerEnd is the key after all entries of the timer with due < end, in the
// hour of the last of them; end ≥ 1.
func byTimerEnd(b []byte, id engine.TimerID, end int64) []byte {
	h := (end - 1) / hour
	b = appendID(binary.BigEndian.AppendUint32(append(b, kindByTimer), uint32(h)), id)
	rest := uint32(end - h*hour)
	return append(b, byte(rest>>16), byte(rest>>8), byte(rest))
}

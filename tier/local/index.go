package local

import (
	"xtimer/engine"
)

// boundSlot is what bounds are rounded down to: a timer that fires every minute
// writes its index once in seventeen minutes, and is named a little early.
const boundSlot = 1 << 20

func slot(ms int64) int64 { return max(ms, 0) &^ (boundSlot - 1) }

// derived reports whether Due lists the last due: it is the due of a one-shot, and
// later than ValidFrom. An earlier due is owed or over.
func derived(t *engine.Timer) bool { return t.Schedule.OneShot() && lastDue(t) > t.ValidFrom }

// lastDue is the last due of a timer, the only one of a one-shot, jitter included;
// 0 when the timer has no end.
func lastDue(t *engine.Timer) int64 {
	if t.LastDue != 0 {
		return t.LastDue
	}
	return t.At
}

// endedAt is when a finished timer ended. It depends on the row alone, so that the
// index entry is found again.
func endedAt(t *engine.Timer) int64 { return max(lastDue(t), t.UpdatedAt) }

// index lists the entries that lead to a timer; bound is that of a recurring
// one. Keys and values are cut from buf, which is returned.
func index(ws []write, buf []byte, t *engine.Timer, bound int64) ([]write, []byte) {
	cut := func(n int) []byte { return buf[n:len(buf):len(buf)] }

	n := len(buf)
	buf = nameKey(buf, t.App, t.Name, t.ID)
	key := cut(n)
	n = len(buf)
	buf = appendID(append(buf, valueVersion), t.ID)
	ws = append(ws, write{key: key, val: cut(n)})

	for i := range t.Labels {
		n = len(buf)
		buf = labelKey(buf, t.Labels[i].Key, t.Labels[i].Value)
		buf = appendID(buf, t.ID)
		ws = append(ws, write{key: cut(n), val: none})
	}

	if t.Status == engine.Finished {
		w, buf := endedEntry(buf, endedAt(t), t.ID, []byte(t.App))
		return append(ws, w), buf
	}
	n = len(buf)
	buf = appendID(statusKey(buf, t.Status, t.App), t.ID)
	ws = append(ws, write{key: cut(n), val: none})
	if t.Status != engine.Enabled {
		return ws, buf
	}
	if !t.Schedule.OneShot() {
		n = len(buf)
		buf = timeKey(buf, kindRecur, bound, t.ID)
		if ws = append(ws, write{key: cut(n), val: none}); t.LastDue == 0 {
			return ws, buf
		}
	}
	n = len(buf)
	buf = timeKey(buf, kindLast, lastDue(t), t.ID)
	key, n = cut(n), len(buf)
	buf = appendLast(buf, t)
	return append(ws, write{key: key, val: cut(n)}), buf
}

// appendLast appends the value of the index of last dues. For a one-shot that Due
// lists, the value has all that archiving needs, so that the row is not read:
//
//	version 1 updated-at (6 bytes) app        version 0
func appendLast(b []byte, t *engine.Timer) []byte {
	if !derived(t) {
		return append(b, valueVersion, 0)
	}
	return append(appendTime(append(b, valueVersion, 1), t.UpdatedAt), t.App...)
}

func readLast(v []byte) (derived bool, updatedAt int64, app []byte, err error) {
	if len(v) == 2 && v[0] == valueVersion && v[1] == 0 {
		return false, 0, nil, nil
	}
	if len(v) < 8 || v[0] != valueVersion || v[1] != 1 {
		return false, 0, nil, errShort
	}
	return true, readTime(v[2:]), v[8:], nil
}

// endedEntry is the index entry of a finished timer.
func endedEntry(buf []byte, at int64, id engine.TimerID, app []byte) (write, []byte) {
	n := len(buf)
	buf = timeKey(buf, kindEnded, at, id)
	m := len(buf)
	buf = append(append(buf, valueVersion), app...)
	return write{key: buf[n:m:m], val: buf[m:len(buf):len(buf)]}, buf
}

func labelKey(b []byte, key, value string) []byte {
	return appendText(appendText(append(b, kindLabel), key), value)
}

func statusKey(b []byte, st engine.Status, app string) []byte {
	return appendText(append(b, kindStatus, byte(st)), app)
}

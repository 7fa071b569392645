package local

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"reflect"
	"slices"
	"strings"
	"testing"

	"xtimer/engine"
	"xtimer/engine/policy"
)

// FuzzValues: whatever stands in a row is refused or read, and what is read is
// written as the same again.
func FuzzValues(f *testing.F) {
	st := &stats{seq: 7, timers: [3]int64{1, 2, 3}, owed: map[int64]int64{20000: 5, 20001: 1}, ranges: map[int64]int64{20000: 2}}
	f.Add(st.encode(nil))
	f.Add(encodeShard(nil, engine.Shard{Fence: 3, Watermark: 1763658000250, Owner: "a"}))
	f.Add((&bound{due: 1763658000250, version: 9}).encode())
	f.Add(encodeUse(nil, &policy.Use{Timer: 7354, Expires: 1763658000250, Body: [32]byte{1, 31: 2}}))
	f.Add(appendTime([]byte{valueVersion, 1}, 1763658000250))
	f.Add(appendID([]byte{valueVersion}, 7354))
	f.Add(appendText(appendText(nil, "a\x00b"), ""))
	f.Add([]byte{valueVersion, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		same := func(what string, got, want any) {
			t.Helper()
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %+v was written, and %+v is read", what, want, got)
			}
		}
		read := func() (*stats, error) {
			st := &stats{owed: map[int64]int64{}, ranges: map[int64]int64{}}
			return st, st.decode(b)
		}
		if st, err := read(); err == nil {
			b = st.encode(nil)
			again, err := read()
			same("stats", again, st)
			same("stats", err, nil)
			sum := int64(0)
			for _, rows := range []map[int64]int64{st.owed, st.ranges} {
				for _, n := range rows {
					sum += n
				}
			}
			same("sum of stats", st.owedRows, sum)
		}
		if sh, err := decodeShard(b); err == nil {
			again, _ := decodeShard(encodeShard(nil, sh))
			same("shard", again, sh)
		}
		if x, err := decodeBound(b); err == nil {
			same("bound", x.encode(), b)
		}
		if x, err := decodeUse(b); err == nil {
			same("use", encodeUse(nil, x), b)
		}
		if ok, at, app, err := readLast(b); err == nil && ok {
			same("last", append(appendTime([]byte{valueVersion, 1}, at), app...), b)
		}
		if id, err := decodeName(nil, b); err == nil {
			same("name", appendID([]byte{valueVersion}, id), b)
		}
		if s, rest, ok := readText(b); ok {
			again, rest2, ok := readText(append(appendText(nil, s), rest...))
			same("text", again, s)
			same("text", rest2, rest)
			same("text", ok, true)
		}
	})
}

// FuzzByTimer: the entries of any records have their dues, each once; and
// whatever stands in an entry is refused or read.
func FuzzByTimer(f *testing.F) {
	due := func(ms ...uint64) (b []byte) {
		for _, v := range ms {
			b = binary.BigEndian.AppendUint64(append(b, byte(v/hour%2)), v)
		}
		return b
	}
	f.Add(due(1763658000250, 1763658000250, 1763658001250, 1763661600000), []byte{valueVersion, 3})
	f.Add(due(0, hour-1, hour), []byte{valueVersion, 0x80})
	f.Add(due(uint64(engine.MaxDue)), []byte{valueVersion, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, dues, val []byte) {
		var keys, got []engine.Key
		for ; len(dues) >= 9; dues = dues[9:] {
			keys = append(keys, engine.Key{Timer: 7354 + engine.TimerID(dues[0]%3), Due: int64(binary.BigEndian.Uint64(dues[1:]) % uint64(engine.MaxDue+1))})
		}
		before := func(a, b engine.Key) int {
			return bytes.Compare(byTimerKey(nil, a)[5:13], byTimerKey(nil, b)[5:13])*2 + int(max(-1, min(1, a.Due-b.Due)))
		}
		for _, w := range indexWrites(nil, slices.Clone(keys)) {
			first, more, err := readByTimer(w.key, w.val)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, first)
			for _, d := range more {
				if d/hour != first.Due/hour {
					t.Fatalf("%d stands in the hour of %d", d, first.Due)
				}
				got = append(got, engine.Key{Timer: first.Timer, Due: d})
			}
			if _, _, err := readByTimer(w.key, val); err == nil && (len(val) == 0 || val[0] != valueVersion) {
				t.Fatalf("%x is read", val)
			}
		}
		slices.SortFunc(keys, before)
		slices.SortFunc(got, before)
		if keys = slices.Compact(keys); !slices.Equal(got, keys) {
			t.Fatalf("%v are read, %v were written", got, keys)
		}
		if _, _, err := readByTimer(dues, val); err == nil {
			t.Fatalf("%x is a key", dues)
		}
	})
}

// FuzzCursor: no cursor is taken but one that was given, and none of another walk.
func FuzzCursor(f *testing.F) {
	f.Add(makeCursor(kindName, appendText(nil, "a")), byte(kindName), []byte("a"))
	f.Add("", byte(0), []byte{})
	f.Add(base64.RawURLEncoding.EncodeToString([]byte{valueVersion, kindName, 0, 0, 0, 0}), byte(kindName), []byte{0})
	f.Fuzz(func(t *testing.T, s string, kind byte, rest []byte) {
		s = strings.NewReplacer("\r", "", "\n", "").Replace(s) // which base64 passes over
		if b, err := openCursor(s, kind); err == nil && makeCursor(kind, b) != s {
			t.Fatalf("%q is taken for %x", s, b)
		}
		c := makeCursor(kind, rest)
		if b, err := openCursor(c, kind); err != nil || !bytes.Equal(b, rest) {
			t.Fatalf("%x comes back as %x, %v", rest, b, err)
		}
		if _, err := openCursor(c, kind+1); err == nil {
			t.Fatalf("%q is taken by another walk", c)
		}
	})
}

package local

import (
	"encoding/binary"
	"errors"
	"fmt"

	"xtimer/engine"
)

// The first byte of a key says what it holds; tier/DESIGN.md draws the table.
const (
	kindMeta    = 'a' // the format version and the stats
	kindOwedAt  = 'b' // not before, timer, due → nothing
	kindLeftOut = 'c' // minute whose history is incomplete → nothing
	kindEnded   = 'd' // finished at, timer → app
	kindDeleted = 'e' // timer → deleted at, while a version is kept
	kindFailure = 'f' // due, timer → app, or nothing
	kindBound   = 'g' // timer → bound of a recurring timer, once raised
	kindRecord  = 'h' // due, timer → record of history
	kindByTimer = 'i' // hour, timer, ms in the hour (hash of what follows) → dues that follow
	kindLane    = 'j' // lane, not before, timer, due → nothing
	kindOnce    = 'k' // app, Idempotency-Key → timer, hash, expiry
	kindLabel   = 'l' // key, value, timer → nothing
	kindMisfire = 'm' // due, timer → app
	kindName    = 'n' // app, name (timer when it has no name) → timer
	kindLast    = 'o' // last due, timer → whether Due lists it: of a one-shot
	kindObject  = 'p' // kind, app, name → object
	kindOwed    = 'q' // timer, due → owed row
	kindRecur   = 'r' // bound, timer → nothing
	kindStatus  = 's' // status, app, timer → nothing
	kindTimer   = 't' // timer → definition
	kindBucket  = 'u' // name → until, fence, body of a bucket
	kindVersion = 'v' // timer, version → former definition
	kindShard   = 'w' // shard → fence, owner, watermark
	kindOnceAt  = 'x' // expiry, app, Idempotency-Key → nothing
	kindFormer  = 'y' // replaced at, timer, version → nothing

	kinds = 'y' + 1 // the size of an array indexed by kind
)

// valueVersion begins every value that is not one of the engine's records,
// which bring their own.
const valueVersion = 1

// none is the value of an index entry: all it says is in its key.
var none = []byte{valueVersion}

// maxTime is the last instant that six bytes of a key hold.
const maxTime = 1<<48 - 1

// day is what retention drops at a time.
const day = 24 * hour

func appendTime(b []byte, ms int64) []byte {
	v := uint64(min(max(ms, 0), maxTime))
	return append(b, byte(v>>40), byte(v>>32), byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

func readTime(b []byte) int64 {
	_ = b[5]
	return int64(b[0])<<40 | int64(b[1])<<32 | int64(b[2])<<24 | int64(b[3])<<16 | int64(b[4])<<8 | int64(b[5])
}

func appendID(b []byte, id engine.TimerID) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(id))
}

func readID(b []byte) engine.TimerID { return engine.TimerID(binary.BigEndian.Uint64(b)) }

// appendText writes s so that keys sort as texts do, whatever comes after: a
// zero byte is escaped, and 0x00 0x01 ends it.
func appendText(b []byte, s string) []byte {
	b = appendEscaped(b, s)
	return append(b, 0, 1)
}

// appendEscaped is appendText without its end: what every text that begins
// with s begins with.
func appendEscaped(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if b = append(b, s[i]); s[i] == 0 {
			b = append(b, 0xff)
		}
	}
	return b
}

// readText reads what appendText wrote, and what is left after it.
func readText(b []byte) (s string, rest []byte, ok bool) {
	var out []byte
	for i := 0; i+1 < len(b); i++ {
		if b[i] != 0 {
			out = append(out, b[i])
			continue
		}
		if b[i+1] == 1 {
			return string(out), b[i+2:], true
		}
		out = append(out, 0)
		i++
	}
	return "", nil, false
}

func timerKey(b []byte, id engine.TimerID) []byte { return appendID(append(b, kindTimer), id) }

func deletedKey(b []byte, id engine.TimerID) []byte { return appendID(append(b, kindDeleted), id) }

func boundKey(b []byte, id engine.TimerID) []byte { return appendID(append(b, kindBound), id) }

func nameKey(b []byte, app, name string, id engine.TimerID) []byte {
	b = appendText(appendText(append(b, kindName), app), name)
	if name == "" {
		b = appendID(b, id)
	}
	return b
}

func timeKey(b []byte, kind byte, ms int64, id engine.TimerID) []byte {
	return appendID(appendTime(append(b, kind), ms), id)
}

func recordKey(b []byte, k engine.Key) []byte { return timeKey(b, kindRecord, k.Due, k.Timer) }

func owedKey(b []byte, k engine.Key) []byte {
	return appendTime(appendID(append(b, kindOwed), k.Timer), k.Due)
}

// owedKeyLen is the length of what owedKey writes.
const owedKeyLen = 1 + 8 + 6

func readOwedKey(k []byte) engine.Key {
	return engine.Key{Timer: readID(k[1:]), Due: readTime(k[1+8:])}
}

func owedAtKey(b []byte, o *engine.Owed) []byte {
	b = appendTime(append(b, kindOwedAt), o.NotBefore)
	return appendTime(appendID(b, o.Key.Timer), o.Key.Due)
}

func laneKey(b []byte, lane engine.Lane, p engine.Place) []byte {
	b = appendTime(binary.BigEndian.AppendUint64(append(b, kindLane), uint64(lane)), p.NotBefore)
	return appendTime(appendID(b, p.Key.Timer), p.Key.Due)
}

func versionKey(b []byte, id engine.TimerID, version uint32) []byte {
	return binary.BigEndian.AppendUint32(appendID(append(b, kindVersion), id), version)
}

func onceKey(b []byte, app, key string) []byte {
	return appendText(appendText(append(b, kindOnce), app), key)
}

func onceAtKey(b []byte, o *engine.Once) []byte {
	b = appendTime(append(b, kindOnceAt), o.Expires)
	return appendText(appendText(b, o.App), o.Key)
}

func objectKey(b []byte, k engine.ObjectKey) []byte {
	return appendText(appendText(appendText(append(b, kindObject), k.Kind), k.App), k.Name)
}

func readObjectKey(b []byte) (k engine.ObjectKey, ok bool) {
	rest := b[1:]
	for _, part := range []*string{&k.Kind, &k.App, &k.Name} {
		if *part, rest, ok = readText(rest); !ok {
			return k, false
		}
	}
	return k, len(rest) == 0
}

// after is the least key greater than all that begin with prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

var errKey = errors.New("the key has a form that this program does not write")

// damaged wraps an error that means: what is stored is not what was written.
func damaged(key []byte, err error) error {
	return &engine.Damage{Row: fmt.Sprintf("the store's row at key %q", key), Err: err}
}

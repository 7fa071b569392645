package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"xtimer/engine"
)

// The stored form of a group is drawn in doc.go and pinned by golden bytes in
// group_test.go.
const (
	groupVersion = 1

	groupHeader = 10 // version, kind, count
	groupFooter = 4  // crc32c

	kindRecords = 'r' // count records follow
	kindLost    = 'l' // count records are known to be lost; none follow

	kindBegun    = 1
	kindFinished = 2

	begunSize      = 26 // kind, flags, timer, due, generation, attempt
	finishedHeader = 5  // kind, length

	flagOrigin     = 0x0f // the origin's number
	flagAtMostOnce = 0x10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// group is a run of records that is committed as one key. Its buffer is the
// stored value in the making and is used again and again.
type group struct {
	first  uint64
	count  uint64
	since  time.Time // of the first record
	finish bool      // it holds more than Begins
	b      []byte
}

func (g *group) reset(first uint64, now time.Time) {
	var header [groupHeader]byte
	*g = group{first: first, since: now, b: append(g.b[:0], header[:]...)}
}

func (g *group) end() uint64 { return g.first + g.count }

func (g *group) begin(b *engine.Begun) {
	flags := byte(b.Origin) & flagOrigin
	if b.AtMostOnce {
		flags |= flagAtMostOnce
	}
	g.count++
	g.b = append(g.b, kindBegun, flags)
	g.b = binary.LittleEndian.AppendUint64(g.b, uint64(b.Key.Timer))
	g.b = binary.LittleEndian.AppendUint64(g.b, uint64(b.Key.Due))
	g.b = binary.LittleEndian.AppendUint32(g.b, b.Generation)
	g.b = binary.LittleEndian.AppendUint32(g.b, b.Attempt)
}

func (g *group) finished(task []byte) {
	g.count++
	g.finish = true
	g.b = append(g.b, kindFinished)
	g.b = binary.LittleEndian.AppendUint32(g.b, uint32(len(task)))
	g.b = append(g.b, task...)
}

// seal completes the stored value; nothing may be appended afterwards.
func (g *group) seal(kind byte) []byte {
	g.b[0], g.b[1] = groupVersion, kind
	binary.LittleEndian.PutUint64(g.b[2:], g.count)
	g.b = binary.LittleEndian.AppendUint32(g.b, groupSum(g.first, g.b))
	return g.b
}

// groupSum covers the position too: a value under another's key is noticed.
func groupSum(first uint64, b []byte) uint32 {
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], first)
	return crc32.Update(crc32.Checksum(key[:], castagnoli), castagnoli, b)
}

// checkGroup verifies the frame of a stored group and returns the number of its
// positions.
func checkGroup(first uint64, v []byte) (count uint64, err error) {
	if len(v) < groupHeader+groupFooter {
		return 0, fmt.Errorf("group at position %d: %d bytes are too few", first, len(v))
	}
	body := v[:len(v)-groupFooter]
	if got, want := binary.LittleEndian.Uint32(v[len(body):]), groupSum(first, body); got != want {
		return 0, fmt.Errorf("group at position %d: checksum at offset %d is %08x, its bytes give %08x", first, len(body), got, want)
	}
	if v[0] != groupVersion {
		return 0, fmt.Errorf("group at position %d: version %d, this xtimer reads %d", first, v[0], groupVersion)
	}
	count = binary.LittleEndian.Uint64(v[2:])
	if count == 0 || first+count < first {
		return 0, fmt.Errorf("group at position %d: a count of %d at offset 2", first, count)
	}
	switch records := len(body) - groupHeader; v[1] {
	case kindRecords:
		if count > uint64(records/finishedHeader) {
			return 0, fmt.Errorf("group at position %d: %d records do not fit into %d bytes", first, count, records)
		}
	case kindLost:
		if records != 0 {
			return 0, fmt.Errorf("group at position %d: %d bytes in a group of lost records", first, records)
		}
	default:
		return 0, fmt.Errorf("group at position %d: kind %#02x at offset 1", first, v[1])
	}
	return count, nil
}

// decodeGroup reads a stored group, record by record. What finished gets is a
// view of v.
func decodeGroup(first uint64, v []byte, begun func(engine.Begun) error, finished func([]byte) error) error {
	count, err := checkGroup(first, v)
	if err != nil || v[1] == kindLost {
		return err
	}
	body := v[:len(v)-groupFooter]
	off := groupHeader
	for i := range count {
		b := body[off:]
		n, err := decodeRecord(b, begun, finished)
		if err != nil {
			return fmt.Errorf("record at position %d (%d of %d in its group, offset %d): %w", first+i, i+1, count, off, err)
		}
		off += n
	}
	if off != len(body) {
		return fmt.Errorf("group at position %d: %d bytes after its last record, at offset %d", first, len(body)-off, off)
	}
	return nil
}

// decodeRecord reads one record from the head of b and returns its length.
func decodeRecord(b []byte, begun func(engine.Begun) error, finished func([]byte) error) (int, error) {
	if len(b) == 0 {
		return 0, errCut
	}
	switch b[0] {
	case kindBegun:
		if len(b) < begunSize {
			return 0, errCut
		}
		flags := b[1]
		origin := engine.Origin(flags & flagOrigin)
		if flags&^(flagOrigin|flagAtMostOnce) != 0 || origin > engine.FromCatchUp {
			return 0, fmt.Errorf("flags %#02x are unknown", flags)
		}
		return begunSize, begun(engine.Begun{
			Key: engine.Key{
				Timer: engine.TimerID(binary.LittleEndian.Uint64(b[2:])),
				Due:   int64(binary.LittleEndian.Uint64(b[10:])),
			},
			Generation: binary.LittleEndian.Uint32(b[18:]),
			Attempt:    binary.LittleEndian.Uint32(b[22:]),
			Origin:     origin,
			AtMostOnce: flags&flagAtMostOnce != 0,
		})
	case kindFinished:
		if len(b) < finishedHeader {
			return 0, errCut
		}
		n := uint64(binary.LittleEndian.Uint32(b[1:]))
		if n > uint64(len(b)-finishedHeader) {
			return 0, errCut
		}
		end := finishedHeader + int(n)
		return end, finished(b[finishedHeader:end:end])
	}
	return 0, fmt.Errorf("kind %#02x is unknown", b[0])
}

var errCut = fmt.Errorf("it is cut short")

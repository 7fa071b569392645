package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
	"unsafe"
)

// errShort is what a truncated or garbled record ends in.
var errShort = errors.New("the record is cut short")

// reader takes a record apart; after the first fault every read is zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

func (r *reader) version(what string, newest byte) byte {
	v := r.byte()
	if r.err == nil && (v == 0 || v > newest) {
		r.fail(fmt.Errorf("version %d of a %s is unknown: this program reads versions up to %d", v, what, newest))
	}
	return v
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail(errShort)
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) enum(n int) int {
	v := int(r.byte())
	if v >= n {
		r.fail(fmt.Errorf("%d is not one of the %d known values", v, n))
		return 0
	}
	return v
}

func (r *reader) bool() bool { return r.enum(2) == 1 }

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail(errShort)
		return 0
	}
	r.b = r.b[n:]
	return v
}

// micros reads a time of µs; one too long for a Duration is garbled.
func (r *reader) micros() time.Duration {
	v := r.uint()
	if v > math.MaxInt64/uint64(time.Microsecond) {
		r.fail(fmt.Errorf("%d µs is not a valid time", v))
		return 0
	}
	return time.Duration(v) * time.Microsecond
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail(errShort)
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) float() float64 { return math.Float64frombits(r.fixed()) }

func (r *reader) fixed() uint64 {
	if len(r.b) < 8 {
		r.fail(errShort)
		return 0
	}
	v := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

// count reads the length of a list whose items take at least size bytes each,
// so that a garbled length cannot ask for more memory than the record has.
func (r *reader) count(size int) int {
	n := r.uint()
	if n > uint64(len(r.b)/size) {
		r.fail(errShort)
		return 0
	}
	return int(n)
}

func (r *reader) bytes() []byte {
	n := r.count(1)
	if n == 0 {
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) string() string {
	v := r.bytes()
	return unsafe.String(unsafe.SliceData(v), len(v))
}

func (r *reader) end(what string) error {
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("%d bytes too many", len(r.b))
	}
	if r.err != nil {
		return fmt.Errorf("cannot decode a %s: %w", what, r.err)
	}
	return nil
}

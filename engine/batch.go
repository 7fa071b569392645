package engine

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"
)

// Batch has the tasks of a timer called together with others, whose callbacks differ in their
// bodies only.
type Batch struct {
	Max  int           // tasks in a call, at most: 2 to 1,000
	Wait time.Duration // a call may wait for more until so long after the first due; whole ms
	// headers is the hash of the callback's headers, of a head, which lacks them.
	headers uint64
}

// BatchBytes is the size of the body of a batch, at most.
const BatchBytes = 1 << 20

func (b *Batch) equal(o *Batch) bool {
	if b == nil || o == nil {
		return b == o
	}
	return b.Max == o.Max && b.Wait == o.Wait
}

// BatchClass is a number that tasks share which may be called together, so far as their timers
// say; 0: not with others. Two classes may share a number: see TogetherWith.
func (t *Timer) BatchClass() uint64 {
	c := &t.Callback
	if c.Batch == nil {
		return 0
	}
	h, n := fnv.New64a(), [8]byte{}
	for _, s := range [...]string{c.URL, c.Method, c.Success} {
		_, _ = h.Write([]byte(s))
		_, _ = h.Write(n[:1])
	}
	for _, v := range [...]uint64{uint64(c.Timeout), uint64(c.Batch.Max), uint64(c.Batch.Wait), uint64(t.Delivery), t.headersHash()} {
		binary.LittleEndian.PutUint64(n[:], v)
		_, _ = h.Write(n[:])
	}
	return max(h.Sum64(), 1)
}

func (t *Timer) headersHash() uint64 {
	if t.Omitted != 0 {
		return t.Callback.Batch.headers
	}
	return hashHeaders(t.Callback.Headers)
}

func hashHeaders(headers []Header) uint64 {
	h := fnv.New64a()
	for i := range headers {
		for _, s := range [...]string{headers[i].Name, headers[i].Value, headers[i].Secret} {
			_, _ = h.Write([]byte(s))
			_, _ = h.Write([]byte{0})
		}
	}
	return h.Sum64()
}

// TogetherWith reports whether one call may have tasks of both timers, which are whole.
func (t *Timer) TogetherWith(o *Timer) bool {
	a, b := t.Callback, o.Callback
	a.HasBody, a.BodyKind, a.Body = false, BodyNone, nil
	b.HasBody, b.BodyKind, b.Body = false, BodyNone, nil
	return t.App == o.App && t.Delivery == o.Delivery && a.Batch != nil && a.equal(&b)
}

// BatchCall is what a call of many tasks has.
type BatchCall struct {
	ID uint64
	// Calls are the attempts that the call makes. Its gate takes those out that are not wanted
	// any more, when it is entered.
	Calls []*Call
	// Failures are the outcomes of those that the answer names: Class, Code, ErrorClass,
	// Response and RetryAfter. All others have the outcome of the call.
	Failures map[Key]Outcome
}

// MemberBytes is how many bytes a task of the timer takes in the body of a batch, at most.
func MemberBytes(t *Timer) int {
	n := memberBytes + len(t.Name)
	for i := range len(t.Name) {
		if ch := t.Name[i]; ch < 0x20 || ch > 0x7e || ch == '"' || ch == '\\' || ch == '<' || ch == '>' || ch == '&' {
			n += 5 // as \u0000
		}
	}
	body := len(t.Callback.Body)
	if t.Omitted != 0 && t.Callback.HasBody {
		body = int(t.Omitted) // with headers and labels
	}
	if t.Callback.BodyKind != BodyJSON {
		body = (body + 2) / 3 * 4
	}
	return n + body
}

// memberBytes is the size of a member with the longest numbers, without its name and body.
const memberBytes = 300

// BatchName is how a batch is named outside.
func BatchName(id uint64) string { return fmt.Sprintf("%016x", id) }

// ParseBatchName reads what BatchName wrote.
func ParseBatchName(s string) (uint64, error) {
	id, err := strconv.ParseUint(s, 16, 64)
	if err != nil || len(s) != 16 {
		return 0, fmt.Errorf("%q is not the id of a batch", s)
	}
	return id, nil
}

// inBatch reports whether an attempt was one of a batch.
func (t *Task) inBatch() bool {
	for i := range t.Attempts {
		if t.Attempts[i].Batch != 0 {
			return true
		}
	}
	return false
}

func putBatches(b []byte, t *Task) []byte {
	for i := range t.Attempts {
		a := &t.Attempts[i]
		b = putUint(b, uint64(a.BatchSize))
		if a.BatchSize != 0 {
			b = binary.LittleEndian.AppendUint64(b, a.Batch)
		}
	}
	return b
}

func (r *reader) batches(t *Task) {
	for i := range t.Attempts {
		a := &t.Attempts[i]
		a.Batch = 0
		if a.BatchSize = int(r.uint()); a.BatchSize != 0 {
			a.Batch = r.fixed()
		}
	}
}

// putBatch appends the batch of a timer, with what only its head needs.
func putBatch(b []byte, t *Timer) []byte {
	c, headers := t.Callback.Batch, uint64(0)
	if t.Omitted != 0 {
		headers = c.headers
	}
	b = putInt(putUint(b, uint64(c.Max)), int64(c.Wait))
	return binary.LittleEndian.AppendUint64(b, headers)
}

func (r *reader) batch() *Batch {
	return &Batch{Max: int(r.uint()), Wait: time.Duration(r.int()), headers: r.fixed()}
}

// batchOfHead is the batch of a timer's head.
func batchOfHead(t *Timer) *Batch {
	if t.Callback.Batch == nil {
		return nil
	}
	b := *t.Callback.Batch
	b.headers = t.headersHash()
	return &b
}

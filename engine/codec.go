package engine

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// The stored forms of a timer, a task and an owed row, the same in every tier.
//
//	record  = version (1 byte) field…
//	uint    = unsigned varint        int = zigzag varint
//	string  = uint length, bytes     float = 8 bytes, little endian
//
// A reader takes every version up to its own and refuses a newer one. Golden
// bytes stand in codec_test.go. Decoded strings and slices are views of the
// bytes given: a timer costs one allocation and a few more for its lists, and
// the bytes must not be changed afterwards.
const (
	// 2: stale_after, and what a head leaves out; 3: who made the version; 4: flow keys; 5: the
	// secrets of headers; 6: the batch; each if needed
	timerVersion = 6
	// 2: the phases of an attempt; 3: that it was dismissed, if it was; 4: what held it, if
	// something did; 5: the batches of its attempts, if one was in a batch
	taskVersion = 5
	owedVersion = 4 // 2: the lane; 3: that its timer is a one-shot, if it is; 4: for how long it was held, if it was
)

// AppendTimer appends the stored form of t, which has to be whole, to b.
func AppendTimer(b []byte, t *Timer) []byte {
	if t.Omitted != 0 {
		panic("BUG: the head of a timer is not its definition")
	}
	return appendTimer(b, t)
}

// leastTimerVersion is the oldest that can say all of t: former programs read it.
func leastTimerVersion(t *Timer) byte {
	switch {
	case t.Callback.Batch != nil:
		return 6
	case t.Callback.hasSecrets():
		return 5
	case t.Flow != "":
		return 4
	case t.UpdatedBy != "":
		return 3
	case t.StaleAfter != 0 || t.Omitted != 0:
		return 2
	}
	return 1
}

func appendTimer(b []byte, t *Timer) []byte {
	version := leastTimerVersion(t)
	b = append(b, version)
	b = putUint(b, uint64(t.ID))
	b = putString(b, t.App)
	b = putString(b, t.Name)
	b = append(b, byte(t.Status))
	b = putString(b, t.Reason)
	b = putUint(b, uint64(t.Version))
	b = putUint(b, uint64(t.Generation))
	for _, v := range [...]int64{t.ValidFrom, t.Anchor, t.At, t.LastDue, t.CreatedAt, t.UpdatedAt} {
		b = putInt(b, v)
	}

	s := &t.Schedule
	b = putString(b, s.Cron)
	b = putString(b, s.TimeZone)
	b = putBool(b, s.HasDelay)
	for _, v := range [...]int64{int64(s.Every), s.At, int64(s.Delay), s.StartAt, s.EndAt, s.MaxRuns, int64(s.Jitter)} {
		b = putInt(b, v)
	}

	c := &t.Callback
	b = putString(b, c.URL)
	b = putString(b, c.Method)
	b = putUint(b, uint64(len(c.Headers)))
	for _, h := range c.Headers {
		b = putString(putString(b, h.Name), h.Value)
	}
	b = putBool(b, c.HasBody)
	b = append(b, byte(c.BodyKind))
	b = putBytes(b, c.Body)
	b = putInt(b, int64(c.Timeout))
	b = putString(b, c.Success)

	r := &t.Retry
	b = putInt(b, int64(r.MaxAttempts))
	b = putInt(b, int64(r.Backoff))
	b = putFloat(b, r.Multiplier)
	b = putInt(b, int64(r.MaxBackoff))
	b = putFloat(b, r.Jitter)
	b = putInt(b, int64(r.MaxAge))

	b = append(b, byte(t.Misfire.Policy))
	b = putInt(b, int64(t.Misfire.Window))
	b = append(b, byte(t.Overlap), byte(t.Delivery), byte(t.Priority))
	b = putUint(b, uint64(len(t.Labels)))
	for _, l := range t.Labels {
		b = putString(putString(b, l.Key), l.Value)
	}
	if version >= 2 {
		b = putUint(putInt(b, int64(t.StaleAfter)), uint64(t.Omitted))
	}
	if version >= 3 {
		b = putString(b, t.UpdatedBy)
	}
	if version >= 4 {
		b = putString(b, string(t.Flow))
	}
	if version >= 5 {
		for _, h := range c.Headers {
			b = putString(b, h.Secret)
		}
	}
	if version >= 6 {
		b = putBatch(b, t)
	}
	return b
}

// DecodeTimer reads what AppendTimer or AppendHead wrote.
func DecodeTimer(b []byte) (*Timer, error) {
	r := reader{b: b}
	t := &Timer{}
	version := r.timerHead(t)

	c := &t.Callback
	c.URL, c.Method = r.string(), r.string()
	if n := r.count(2); n > 0 {
		c.Headers = make([]Header, n)
		for i := range c.Headers {
			c.Headers[i] = Header{Name: r.string(), Value: r.string()}
		}
	}
	c.HasBody, c.BodyKind = r.bool(), BodyKind(r.enum(int(BodyBase64)+1))
	c.Body = r.bytes()
	c.Timeout, c.Success = time.Duration(r.int()), r.string()

	t.Retry = Retry{
		MaxAttempts: int(r.int()), Backoff: time.Duration(r.int()), Multiplier: r.float(),
		MaxBackoff: time.Duration(r.int()), Jitter: r.float(), MaxAge: time.Duration(r.int()),
	}
	t.Misfire.Policy = MisfirePolicy(r.enum(len(misfireNames)))
	t.Misfire.Window = time.Duration(r.int())
	t.Overlap = Overlap(r.enum(len(overlapNames)))
	t.Delivery = Delivery(r.enum(len(deliveryNames)))
	t.Priority = r.enum(10)
	if n := r.count(2); n > 0 {
		t.Labels = make([]Label, n)
		for i := range t.Labels {
			t.Labels[i] = Label{r.string(), r.string()}
		}
	}
	if version >= 2 {
		t.StaleAfter, t.Omitted = time.Duration(r.int()), uint32(r.uint())
	}
	if version >= 3 {
		t.UpdatedBy = r.string()
	}
	if version >= 4 {
		t.Flow = Flow(r.string())
	}
	if version >= 5 {
		for i := range c.Headers {
			c.Headers[i].Secret = r.string()
		}
	}
	if version >= 6 {
		c.Batch = r.batch()
	}
	return t, r.end("timer")
}

// DecodeTimerHead reads of a stored timer what comes before its callback: what it
// is, its status, times and schedule, which is what a plan is made of. The rest of
// t stays as it is. A million timers that are moved from tier to tier are only
// looked at: 0.4 µs each, without garbage, where DecodeTimer takes 2 and 512 B.
func DecodeTimerHead(b []byte, t *Timer) error {
	r := reader{b: b}
	r.timerHead(t)
	return r.err
}

func (r *reader) timerHead(t *Timer) (version byte) {
	version = r.version("timer", timerVersion)
	t.ID = TimerID(r.uint())
	t.App, t.Name = r.string(), r.string()
	t.Status = Status(r.enum(len(statusNames)))
	t.Reason = r.string()
	t.Version, t.Generation = uint32(r.uint()), uint32(r.uint())
	for _, p := range [...]*int64{&t.ValidFrom, &t.Anchor, &t.At, &t.LastDue, &t.CreatedAt, &t.UpdatedAt} {
		*p = r.int()
	}
	s := &t.Schedule
	s.Cron, s.TimeZone, s.HasDelay = r.string(), r.string(), r.bool()
	s.Every, s.At, s.Delay = time.Duration(r.int()), r.int(), time.Duration(r.int())
	s.StartAt, s.EndAt, s.MaxRuns, s.Jitter = r.int(), r.int(), r.int(), time.Duration(r.int())
	return version
}

// EncodeTask is AppendTask into a slice of its own, allocated once.
func EncodeTask(t *Task) []byte {
	n := 64 + len(t.App) + len(t.Name) + len(t.Reason)
	for i := range t.Attempts {
		n += 48 + len(t.Attempts[i].ErrorClass) + len(t.Attempts[i].Response)
	}
	return AppendTask(make([]byte, 0, n), t)
}

// AppendTask appends the stored form of t to b.
func AppendTask(b []byte, t *Task) []byte {
	version := byte(2) // as former programs read it
	switch {
	case t.inBatch():
		version = 5
	case len(t.Holds) > 0:
		version = 4
	case t.Dismissed != 0:
		version = 3
	}
	b = append(b, version)
	b = putUint(b, uint64(t.Key.Timer))
	b = putInt(b, t.Key.Due)
	b = putString(b, t.App)
	b = putString(b, t.Name)
	b = putUint(b, uint64(t.Generation))
	b = append(b, byte(t.Origin), byte(t.Status))
	b = putString(b, t.Reason)
	for _, v := range [...]int64{t.DueLast, t.Count, int64(t.Lateness), t.NotBefore, t.Ended, int64(t.Base), t.Since} {
		b = putInt(b, v)
	}
	b = putUint(b, uint64(len(t.Attempts)))
	for i := range t.Attempts {
		a := &t.Attempts[i]
		b = putInt(b, int64(a.N))
		b = putInt(b, a.Started)
		b = putInt(b, int64(a.Took))
		b = putInt(b, int64(a.Code))
		b = putString(b, a.ErrorClass)
		b = putBytes(b, a.Response)
		for _, d := range a.Phases.all() {
			b = putUint(b, uint64(max(0, *d)/time.Microsecond))
		}
	}
	if version >= 3 {
		b = putString(putInt(b, t.Dismissed), t.DismissedBy)
	}
	if version >= 4 {
		b = putHolds(b, t)
	}
	if version >= 5 {
		b = putBatches(b, t)
	}
	return b
}

// putHolds appends what held a task, and the part of each attempt in it.
func putHolds(b []byte, t *Task) []byte {
	for i := range t.Attempts {
		b = putUint(b, uint64(max(0, t.Attempts[i].Phases.Hold)/time.Microsecond))
	}
	b = putUint(b, uint64(len(t.Holds)))
	for i := range t.Holds {
		h := &t.Holds[i]
		b = putUint(putString(putString(b, h.By), h.Name), uint64(max(0, h.Took)/time.Microsecond))
	}
	return b
}

func (r *reader) holds(t *Task) {
	for i := range t.Attempts {
		t.Attempts[i].Phases.Hold = r.micros()
	}
	if n := r.count(3); n > 0 {
		t.Holds = make([]Hold, n)
		for i := range t.Holds {
			t.Holds[i] = Hold{r.string(), r.string(), r.micros()}
		}
	}
}

// all of them that every record has, in its order.
func (p *Phases) all() [7]*time.Duration {
	return [...]*time.Duration{&p.Wheel, &p.Queue, &p.Dial, &p.TLS, &p.Send, &p.FirstByte, &p.Read}
}

// DecodeTask reads what AppendTask wrote.
func DecodeTask(b []byte) (*Task, error) {
	t := &Task{}
	return t, DecodeTaskInto(b, t)
}

// DecodeTaskInto is DecodeTask into a task that is used again, with its attempts: a list
// that looks at thousands of records for a few makes no garbage.
func DecodeTaskInto(b []byte, t *Task) error {
	r := reader{b: b}
	r.task(t)
	return r.end("task")
}

func (r *reader) task(t *Task) {
	version := r.version("task", taskVersion)
	*t = Task{Attempts: t.Attempts[:0]}
	t.Key = Key{TimerID(r.uint()), r.int()}
	t.App, t.Name = r.string(), r.string()
	t.Generation = uint32(r.uint())
	t.Origin = Origin(r.enum(len(originNames)))
	t.Status = TaskStatus(r.enum(len(taskStatusNames)))
	t.Reason = r.string()
	t.DueLast, t.Count, t.Lateness = r.int(), r.int(), time.Duration(r.int())
	t.NotBefore, t.Ended, t.Base, t.Since = r.int(), r.int(), int(r.int()), r.int()
	if n := r.count(6); n > 0 {
		t.Attempts = slices.Grow(t.Attempts, n)[:n]
		for i := range t.Attempts {
			t.Attempts[i] = Attempt{
				N: int(r.int()), Started: r.int(), Took: time.Duration(r.int()), Code: int(r.int()),
				ErrorClass: r.string(), Response: r.bytes(),
			}
			if version >= 2 {
				for _, d := range t.Attempts[i].Phases.all() {
					*d = r.micros()
				}
			}
		}
	}
	if version >= 3 {
		t.Dismissed, t.DismissedBy = r.int(), r.string()
	}
	if version >= 4 {
		r.holds(t)
	}
	if version >= 5 {
		r.batches(t)
	}
}

func putUint(b []byte, v uint64) []byte   { return binary.AppendUvarint(b, v) }
func putInt(b []byte, v int64) []byte     { return binary.AppendVarint(b, v) }
func putString(b []byte, s string) []byte { return append(putUint(b, uint64(len(s))), s...) }
func putBytes(b, s []byte) []byte         { return append(putUint(b, uint64(len(s))), s...) }

func putFloat(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

func putBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

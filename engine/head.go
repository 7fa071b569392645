package engine

// A timer is its head, which says when it is due and what becomes of its tasks, and
// its payload: the headers and body of its callback, which only a call needs, and its
// labels, which only readers need. A head has at most 3 KiB, a payload at most 540.
// What goes through many timers goes through heads where payloads are large; a call
// reads the whole timer (Cold.Timer).

// MaxCarried is the size (bytes) up to which a stored definition is carried whole from
// tier to tier. A page of 1,000 has 4 MiB at most.
const MaxCarried = 4 << 10

// Payload is the size of the timer's payload in bytes, also of a head, which lacks it.
func (t *Timer) Payload() int {
	n := int(t.Omitted) + len(t.Callback.Body)
	for i := range t.Callback.Headers {
		n += len(t.Callback.Headers[i].Name) + len(t.Callback.Headers[i].Value) + len(t.Callback.Headers[i].Secret)
	}
	for i := range t.Labels {
		n += len(t.Labels[i].Key) + len(t.Labels[i].Value)
	}
	return n
}

// Head is t without its payload, in memory of its own.
func Head(t *Timer) *Timer {
	h, err := DecodeTimer(appendHead(nil, t))
	if err != nil {
		panic("BUG: what was encoded cannot be decoded: " + err.Error())
	}
	return h
}

// Without is t without its payload, whose strings it shares.
func Without(t *Timer) *Timer {
	h := *t
	h.Omitted = uint32(h.Payload())
	h.Callback.Batch = batchOfHead(t)
	h.Callback.Headers, h.Callback.Body, h.Labels = nil, nil, nil
	return &h
}

func appendHead(b []byte, t *Timer) []byte {
	h := *t
	h.Callback.Batch = batchOfHead(t)
	h.Callback.Headers, h.Callback.Body, h.Labels, h.UpdatedBy = nil, nil, nil, ""
	h.Omitted = uint32(t.Payload())
	return appendTimer(b, &h)
}

// AppendCarried appends a stored definition to b as it is carried: as it stands, or
// its head when it is larger than MaxCarried. One that is damaged is carried too, cut to
// that size, and DecodeTimer refuses it: a page that has it has others, too.
func AppendCarried(b, stored []byte) []byte {
	if len(stored) <= MaxCarried {
		return append(b, stored...)
	}
	t, err := DecodeTimer(stored)
	if err != nil {
		return append(b, stored[:MaxCarried]...)
	}
	return appendHead(b, t)
}

// DecodeCarried reads a stored definition as it is carried. The timer keeps nothing of the
// stored form.
func DecodeCarried(stored []byte) (*Timer, error) {
	return DecodeTimer(AppendCarried(nil, stored))
}

// Carried is the stored form of t as it is carried.
func Carried(t *Timer) []byte {
	if t.Payload() > MaxCarried {
		return appendHead(nil, t)
	}
	return appendTimer(nil, t)
}

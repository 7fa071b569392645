package wire

import "xtimer/engine/quota"

// The largest bounds of a quota.
const (
	maxRate  = 1_000_000
	maxStock = 1_000_000_000_000
)

var quotaFields = []Field[quota.Limits]{
	{"timers", func(d *Decoder, v *quota.Limits) { d.Count(&v.Timers, 0, maxStock) }},
	{"bytes", func(d *Decoder, v *quota.Limits) { d.Count(&v.Bytes, 0, maxStock) }},
	{"creates_per_second", func(d *Decoder, v *quota.Limits) { d.Count(&v.CreatesPerSecond, 0, maxRate) }},
	{"fires_per_second", func(d *Decoder, v *quota.Limits) { d.Count(&v.FiresPerSecond, 0, maxRate) }},
	{"in_flight", func(d *Decoder, v *quota.Limits) { d.Count(&v.InFlight, 0, maxRate) }},
}

// DecodeQuota reads the quota of an app.
func DecodeQuota(b []byte) (l quota.Limits, err error) {
	err = Decode(b, func(d *Decoder) { Object(d, &l, quotaFields) })
	return l, err
}

// AppendQuota appends the members of a quota.
func AppendQuota(b []byte, l *quota.Limits) []byte {
	b = IntMember(b, "timers", int64(l.Timers))
	b = IntMember(b, "bytes", int64(l.Bytes))
	b = IntMember(b, "creates_per_second", int64(l.CreatesPerSecond))
	b = IntMember(b, "fires_per_second", int64(l.FiresPerSecond))
	return IntMember(b, "in_flight", int64(l.InFlight))
}

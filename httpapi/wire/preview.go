package wire

import (
	"xtimer/engine"
	"xtimer/engine/plan"
)

// AppendClause appends a clause of a schedule.
func AppendClause(b []byte, c *plan.Clause) []byte {
	b = TextMember(append(b, '{'), "kind", string(c.Kind))
	if c.Times != nil {
		b = append(Member(b, "times"), '[')
		for _, t := range c.Times {
			b = AppendText(Comma(b), plan.TimeOfDay(t))
		}
		b = append(b, ']')
	}
	if c.Kind == plan.ClauseClock {
		b = unitsMember(b, "seconds", c.Seconds)
		b = unitsMember(b, "minutes", c.Minutes)
		b = unitsMember(b, "hours", c.Hours)
	}
	if c.Values != nil {
		b = numbersMember(b, "values", c.Values)
	}
	if c.MonthDays != nil {
		b = append(Member(b, "month_days"), '[')
		for _, d := range c.MonthDays {
			b = append(Comma(b), '{')
			b = TextMember(b, "kind", string(d.Kind))
			if d.N != 0 || d.Kind == plan.MonthDayBeforeLast {
				b = IntMember(b, "n", int64(d.N))
			}
			if d.Weekday != 0 {
				b = IntMember(b, "weekday", int64(d.Weekday))
			}
			b = append(b, '}')
		}
		b = append(b, ']')
	}
	if c.At != 0 {
		b = TimeMember(b, "at", c.At)
	}
	if c.Length != 0 || c.Kind == plan.ClauseOnceAfter {
		b = IntMember(b, "length_ms", c.Length.Milliseconds())
	}
	if c.Count != 0 {
		b = IntMember(b, "count", c.Count)
	}
	if c.Text != "" {
		b = TextMember(b, "text", c.Text)
	}
	return append(b, '}')
}

func unitsMember(b []byte, name string, u plan.Units) []byte {
	b = append(Member(b, name), '{')
	if u.Every > 0 {
		b = IntMember(b, "every", int64(u.Every))
	} else {
		b = numbersMember(b, "values", u.Values)
	}
	return append(b, '}')
}

func numbersMember(b []byte, name string, values []int) []byte {
	b = append(Member(b, name), '[')
	for _, n := range values {
		b = AppendInt(Comma(b), int64(n))
	}
	return append(b, ']')
}

// AppendWarning appends a warning about a schedule.
func AppendWarning(b []byte, w *plan.Warning) []byte {
	b = TextMember(append(b, '{'), "code", w.Code)
	b = TextMember(b, "detail", w.Detail)
	for _, x := range [...]struct{ name, value string }{
		{"reason", w.Reason},
		{"zone", w.Zone},
		{"clock_before", w.Before},
		{"clock_after", w.After},
	} {
		if x.value != "" {
			b = TextMember(b, x.name, x.value)
		}
	}
	if w.At != 0 {
		b = TimeMember(b, "at", w.At)
	}
	if w.Count != 0 {
		b = IntMember(b, "count", w.Count)
	}
	return append(b, '}')
}

// AppendUndefined appends a warning of each flow key that no flow limits.
func AppendUndefined(b []byte, keys []string) []byte {
	for _, key := range keys {
		b = TextMember(append(Comma(b), '{'), "code", "flow_undefined")
		b = TextMember(b, "detail", "no flow limits the key "+key+": its calls have no limit until one is set")
		b = append(TextMember(b, "flow", key), '}')
	}
	return b
}

// AppendMissing appends a warning of each secret that the app does not have.
func AppendMissing(b []byte, secrets []string) []byte {
	for _, name := range secrets {
		b = TextMember(append(Comma(b), '{'), "code", engine.SecretMissing)
		b = TextMember(b, "detail", "the app has no secret "+name+": the timer makes no calls until it is set")
		b = append(TextMember(b, "secret", name), '}')
	}
	return b
}

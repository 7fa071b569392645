package console

import (
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Times are shown in a zone that the visitor chooses, and the zone is written beside
// each of them:
//
//	timer   that of the timer which the time belongs to; UTC where it has none, and in
//	        lists of tasks, which may be of many timers (the default)
//	utc     UTC
//	mine    that of the browser, which app.js tells by a cookie
const (
	zoneCookie = "xtimer_zone"
	mineCookie = "xtimer_zone_mine"
)

// zones are what a visit knows of them.
type zones struct {
	Choice string // timer, utc or mine
	mine   *time.Location
	timer  string                    // the zone of the timer that the page is about; "": none
	known  map[string]*time.Location // those that were looked up; nil for what is none
}

func zonesOf(r *http.Request) zones {
	z := zones{Choice: "timer", mine: time.UTC, known: map[string]*time.Location{}}
	if k, err := r.Cookie(mineCookie); err == nil {
		if name, err := url.QueryUnescape(k.Value); err == nil {
			if l := z.find(name); l != nil {
				z.mine = l
			}
		}
	}
	if k, err := r.Cookie(zoneCookie); err == nil && (k.Value == "utc" || k.Value == "mine") {
		z.Choice = k.Value
	}
	return z
}

// find is nil when there is no such zone.
func (z *zones) find(name string) *time.Location {
	if l, ok := z.known[name]; ok {
		return l
	}
	l, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" || len(name) > 64 {
		l = nil
	}
	z.known[name] = l
	return l
}

// of is the zone in which times of a timer with this zone are shown.
func (z *zones) of(timer string) *time.Location {
	switch z.Choice {
	case "utc":
		return time.UTC
	case "mine":
		return z.mine
	}
	if l := z.find(timer); l != nil {
		return l
	}
	return time.UTC
}

// TimerZone is that of the timer that the page is about.
func (z *zones) TimerZone() string { return z.timer }

// ZoneName is the zone of the page, for app.js.
func (z *zones) ZoneName() string { return z.of(z.timer).String() }

// Offset is the zone of the page at that instant, as it is written: UTC, UTC+8, UTC-3:30.
func (z *zones) Offset(t time.Time) string { return offset(t.In(z.of(z.timer))) }

// Stamp is an instant in the zone of the page.
func (z *zones) Stamp(t time.Time) string { return z.StampIn(z.timer, t) }

// StampIn is an instant of a timer that has this zone.
func (z *zones) StampIn(timer string, t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	t = t.In(z.of(timer))
	return t.Format("2006-01-02 15:04:05.000 ") + offset(t)
}

// Clock is the time of day of an instant.
func (z *zones) Clock(t time.Time) string {
	t = t.In(z.of(z.timer))
	return t.Format("15:04:05.000 ") + offset(t)
}

// HM is the minute of an instant, where the zone is written once for all.
func (z *zones) HM(t time.Time) string { return t.In(z.of(z.timer)).Format("15:04") }

// wall reads an instant: RFC 3339, or what an input for a date and time has, which is in
// the zone of the page.
func (z *zones) wall(text string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	t, err := time.ParseInLocation("2006-01-02T15:04", text, z.of(z.timer))
	if err != nil {
		t, err = time.ParseInLocation("2006-01-02T15:04:05", text, z.of(z.timer)) // reads fractions as well
	}
	return t, err
}

// Input is an instant as an input for a date and time has it.
func (z *zones) Input(t time.Time) string {
	return t.In(z.of(z.timer)).Format("2006-01-02T15:04:05")
}

// ZoneLabel is the zone of the page for a person who fills in a time.
func (z *zones) ZoneLabel() string { return z.of(z.timer).String() }

// Second is the second of an instant, where its minute is written once for all.
func (z *zones) Second(t time.Time) string { return t.In(z.of(z.timer)).Format(":05") }

func offset(t time.Time) string {
	_, s := t.Zone()
	if s == 0 {
		return "UTC"
	}
	sign := '+'
	if s < 0 {
		sign, s = '-', -s
	}
	text := fmt.Sprintf("UTC%c%d", sign, s/3600)
	if m := s % 3600 / 60; m != 0 {
		text += fmt.Sprintf(":%02d", m)
	}
	return text
}

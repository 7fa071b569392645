package console

import (
	"time"

	"xtimer/httpapi/client"
)

// forecastHours are seven days.
const forecastHours = 7 * 24

// forecast is GET /upcoming/hours: the dues of the coming seven days by hour.
func forecast(v *visit) error {
	d := forecastData{App: v.query("app")}
	if err := into(&d.Forecast)(v.api.UpcomingHours(v.ctx, d.App, forecastHours)); err != nil {
		return err
	}
	d.Days = v.days(d.Hours)
	for _, h := range d.Hours {
		d.Total += h.Dues
	}
	return v.show("forecast", v.T("The coming seven days"), &d)
}

type forecastData struct {
	client.Forecast
	App   string
	Days  []dayRow
	Total int64
}

// dayRow is a day in the zone of the page.
type dayRow struct {
	Day   string
	Hours [24]hourCell
}

// hourCell is one hour of a day's clock. At a change of the clock an hour that comes twice
// is one cell, with the dues of both.
type hourCell struct {
	heatCell
	Known bool // false: before now, or after the last hour that was counted
}

// days lays hours out by day.
func (v *visit) days(hours []client.ForecastHour) []dayRow {
	var rows []dayRow
	var most int64
	for _, h := range hours {
		at := h.Hour.In(v.of(""))
		day := at.Format("2006-01-02")
		if len(rows) == 0 || rows[len(rows)-1].Day != day {
			rows = append(rows, dayRow{Day: day})
		}
		c := &rows[len(rows)-1].Hours[at.Hour()]
		if !c.Known {
			c.At, c.Known = h.Hour, true
		}
		c.N += h.Dues
		most = max(most, c.N)
	}
	for i := range rows {
		for j := range rows[i].Hours {
			if c := &rows[i].Hours[j]; c.N > 0 {
				c.Level = int(min(5, 1+4*c.N/most))
			}
		}
	}
	return rows
}

// HourMarks are the hours that the axis names.
func (d *forecastData) HourMarks() []string { return []string{"00", "06", "12", "18"} }

// HourOf is when an hour begins.
func (v *visit) HourOf(t time.Time) string { return t.In(v.of("")).Format("2006-01-02 15:04") }

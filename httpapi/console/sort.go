package console

import (
	"cmp"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"xtimer/httpapi/client"
)

// The order of the list of timers. The API has its own, for it has to find a page
// among millions. What is asked for in another order is sorted here, whole, if it
// is at most mostSorted and found in time; the pages of it are then offsets into
// it. Of more, each page is sorted by itself, and says so.

const (
	mostSorted = 1000
	// sortPiece is what is asked of the API at a time, for what is due goes first.
	sortPiece = 250
)

// columns are those that can be sorted by.
var columns = map[string]func(a, b *client.Timer) int{
	"name":   func(*client.Timer, *client.Timer) int { return 0 }, // decides whenever others are equal
	"status": func(a, b *client.Timer) int { return strings.Compare(a.Status, b.Status) },
	"next": func(a, b *client.Timer) int {
		if a.NextDue.IsZero() != b.NextDue.IsZero() {
			if a.NextDue.IsZero() {
				return 1
			}
			return -1
		}
		return a.NextDue.Compare(b.NextDue)
	},
	"updated": func(a, b *client.Timer) int { return a.UpdatedAt.Compare(b.UpdatedAt) },
}

func (d *timersData) sort() {
	column, down := strings.CutPrefix(d.Sort, "-")
	by := columns[column]
	if by == nil {
		return
	}
	slices.SortFunc(d.Timers, func(a, b *client.Timer) int {
		return cmp.Or(by(a, b), strings.Compare(a.App, b.App), strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	if down {
		slices.Reverse(d.Timers)
	}
}

// findSorted finds all that match, and the page of them that is asked for; false
// when they are too many.
func (d *timersData) findSorted(v *visit, end time.Time) (bool, error) {
	counted, err := v.api.TimerPage(v.ctx, d.Filter, 1, "", client.WithTotal())
	if err != nil {
		return false, err
	}
	if d.Total = counted.Total; d.Total.Count > mostSorted {
		return false, nil
	}
	next := ""
	for asked := 1; ; asked++ {
		l, err := v.api.TimerPage(v.ctx, d.Filter, min(sortPiece, mostSorted-len(d.Timers)), next)
		if err != nil {
			return false, err
		}
		d.add(l)
		if next = l.NextCursor; next == "" {
			break
		}
		if len(d.Timers) >= mostSorted || (asked >= mostSorted/sortPiece || !d.Total.Exact) && time.Now().After(end) {
			d.Timers = nil
			return false, nil
		}
		runtime.Gosched()
	}
	d.sort()
	d.All, d.Total = len(d.Timers), nil
	d.Offset = max(0, min(d.Offset, d.All-1))
	d.Timers = d.Timers[d.Offset:min(d.Offset+d.Limit, d.All)]
	if end := d.Offset + len(d.Timers); end < d.All {
		d.More, d.NextPage = true, withQuery(d.url, "offset", strconv.Itoa(end), "cursor", "")
	}
	for i, t := range d.Timers {
		switch full, err := v.api.Get(v.ctx, t.ID); {
		case err == nil:
			d.Timers[i] = full
		case !client.IsNotFound(err):
			return false, err
		}
	}
	return true, nil
}

// Last is the place of the page's last timer among all that are sorted.
func (d *timersData) Last() int { return d.Offset + len(d.Timers) }

// First is the place of the page's first one.
func (d *timersData) First() int { return d.Offset + 1 }

// SortURL is the list sorted by a column, or the other way round.
func (d *timersData) SortURL(column string) string {
	if d.Sort == column {
		column = "-" + column
	}
	return withQuery(d.url, "sort", column, "offset", "")
}

// Sorted is the aria-sort of a column.
func (d *timersData) Sorted(column string) string {
	switch d.Sort {
	case column:
		return "ascending"
	case "-" + column:
		return "descending"
	}
	return "none"
}

// withQuery is a page with other parameters; those that are "" are left out.
func withQuery(u *url.URL, namesAndValues ...string) string {
	q := u.Query()
	for i := 0; i < len(namesAndValues); i += 2 {
		if q.Del(namesAndValues[i]); namesAndValues[i+1] != "" {
			q.Set(namesAndValues[i], namesAndValues[i+1])
		}
	}
	if len(q) == 0 {
		return u.Path
	}
	return u.Path + "?" + q.Encode()
}

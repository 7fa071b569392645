package console

import (
	"context"
	"encoding/csv"
	"net/http"
	"strconv"
	"strings"
	"time"

	"xtimer/httpapi/client"
)

// The bounds of a file of tasks, which is sent while it is read.
const (
	mostRows = 50_000
	csvPiece = 500 // tasks that are asked of the API at a time
	csvTime  = 2 * time.Minute
)

var csvColumns = []string{
	"due", "app", "name", "timer_id", "status", "reason", "origin", "lateness_ms", "attempts", "code", "error_class", "started", "ended", "due_last", "count", "key",
}

// tasksCSV is GET /tasks.csv: the tasks of the filters in the address, newest first. Times
// are in UTC. If the file has not all of them, its last line says so.
func tasksCSV(v *visit) error {
	d, err := v.taskSearch()
	if err != nil {
		return err
	}
	if d.Wrong != "" {
		return &fault{http.StatusBadRequest, "The URL of this page contains an invalid time."}
	}
	ctx, cancel := context.WithTimeout(v.ctx, csvTime)
	defer cancel()
	l, err := v.api.TaskPage(ctx, d.filter, csvPiece, "")
	if err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	h.Set("Content-Disposition", `attachment; filename="tasks.csv"`)
	if v.r.Method == http.MethodHead {
		return nil
	}
	w := csv.NewWriter(v.w)
	_ = w.Write(csvColumns) // an error is told by Flush
	for rows := 0; ; {
		for i := range l.Tasks[:min(len(l.Tasks), mostRows-rows)] {
			_ = w.Write(csvRow(&l.Tasks[i]))
		}
		rows += len(l.Tasks)
		switch {
		case l.NextCursor == "" && rows <= mostRows:
			w.Flush()
			return nil
		case rows >= mostRows:
			_ = w.Write([]string{"the file ends here: more than " + strconv.Itoa(mostRows) + " tasks match"})
			w.Flush()
			return nil
		}
		if w.Flush(); w.Error() != nil {
			return nil // the visitor went away
		}
		if flush, ok := v.w.(http.Flusher); ok {
			flush.Flush()
		}
		next := l.NextCursor
		if l, err = v.api.TaskPage(ctx, d.filter, csvPiece, next); err != nil {
			_ = w.Write([]string{"the file ends here: " + detail(err)}) // the status was sent long ago
			w.Flush()
			return nil
		}
	}
}

// csvRow is a task as one line.
func csvRow(t *client.Task) []string {
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	late, code, class, started, count := "", "", "", "", ""
	if t.LatenessMS != nil {
		late = strconv.FormatFloat(*t.LatenessMS, 'f', 3, 64)
	}
	if n := len(t.Attempts); n > 0 {
		a := &t.Attempts[n-1]
		class, started = a.ErrorClass, at(a.Started)
		if a.Code != 0 {
			code = strconv.Itoa(a.Code)
		}
	}
	if t.Count != 0 {
		count = strconv.FormatInt(t.Count, 10)
	}
	return []string{
		at(t.Due), cell(t.App), cell(t.Name), t.TimerID, t.Status, t.Reason, t.Origin, late, strconv.Itoa(t.AttemptCount), code, class, started,
		at(t.Ended), at(t.DueLast), count, t.Key,
	}
}

// cell keeps a spreadsheet from reading a text that a user chose as a formula.
func cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r\n", rune(text[0])) {
		return "'" + text
	}
	return text
}

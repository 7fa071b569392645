package engine

import (
	"slices"
	"strings"
)

// TimerFilter selects timers; empty fields select all.
type TimerFilter struct {
	App        string
	NamePrefix string
	Search     string // a part of the name; ASCII letters of either case are the same
	HasStatus  bool
	Status     Status // as stored; the engine derives the rest
	Labels     []LabelMatch
}

// LabelMatch is one term of a label selector: key=value or key!=value.
type LabelMatch struct {
	Key, Value string
	Not        bool
}

// IsEmpty reports whether the filter selects every timer.
func (f *TimerFilter) IsEmpty() bool {
	return f.App == "" && f.NamePrefix == "" && f.Search == "" && !f.HasStatus && len(f.Labels) == 0
}

// Searches reports whether the filter has a part that no index helps with.
func (f *TimerFilter) Searches() bool { return f.Search != "" || f.HasStatus }

// MatchesName reports whether a timer of this name may be selected.
func (f *TimerFilter) MatchesName(name string) bool {
	return strings.HasPrefix(name, f.NamePrefix) && containsFold(name, f.Search)
}

// Matches reports whether a timer is selected by name, app and labels.
func (f *TimerFilter) Matches(t *Timer) bool {
	if f.App != "" && t.App != f.App || f.HasStatus && t.Status != f.Status {
		return false
	}
	if !f.MatchesName(t.Name) {
		return false
	}
	for _, m := range f.Labels {
		if (t.Label(m.Key) == m.Value) == m.Not {
			return false
		}
	}
	return true
}

// TaskFilter selects records of history; zero fields select all. From and To
// bound the due: From ≤ due < To.
type TaskFilter struct {
	App       string
	Timer     TimerID
	Statuses  []TaskStatus
	From, To  int64
	Misfires  bool // only dues that were skipped as misfires
	HasOrigin bool
	Origin    Origin
	// Of the last attempt: its HTTP status, from CodeFrom to CodeTo; or its error class.
	CodeFrom, CodeTo int
	Class            string
	// HasDismissed: only tasks that were dismissed, or only those that were not.
	HasDismissed, Dismissed bool
	// Search is a part of the name, or of how the last attempt failed: its reason, error
	// class or answer. ASCII letters of either case are the same.
	Search string
}

// Searches reports whether the filter has a part that no index helps with.
func (f *TaskFilter) Searches() bool {
	return f.Search != "" || f.CodeTo != 0 || f.Class != "" || f.HasDismissed
}

// Matches reports whether a task is selected.
func (f *TaskFilter) Matches(t *Task) bool {
	if f.App != "" && t.App != f.App || f.Timer != 0 && t.Key.Timer != f.Timer ||
		f.HasOrigin && t.Origin != f.Origin || t.Key.Due < f.From || f.To != 0 && t.Key.Due >= f.To {
		return false
	}
	if len(f.Statuses) > 0 && !slices.Contains(f.Statuses, t.Status) || f.Misfires && !t.IsMisfire() {
		return false
	}
	return f.matchesEnd(t)
}

// matchesEnd looks at how a task ended.
func (f *TaskFilter) matchesEnd(t *Task) bool {
	if f.HasDismissed && f.Dismissed != (t.Dismissed != 0) {
		return false
	}
	var last Attempt
	if n := len(t.Attempts); n > 0 {
		last = t.Attempts[n-1]
	}
	if f.CodeTo != 0 && (last.Code < f.CodeFrom || last.Code > f.CodeTo) || f.Class != "" && last.ErrorClass != f.Class {
		return false
	}
	return containsFold(t.Name, f.Search) || containsFold(t.Reason, f.Search) || last.ErrorClass != "" &&
		(containsFold(last.ErrorClass, f.Search) || containsFold(last.Response, f.Search))
}

// containsFold reports whether part is in s; ASCII letters of either case are the same.
func containsFold[T string | []byte](s T, part string) bool {
	for i := 0; i+len(part) <= len(s); i++ {
		n := 0
		for n < len(part) && lower(s[i+n]) == lower(part[n]) {
			n++
		}
		if n == len(part) {
			return true
		}
	}
	return false
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}

package engine

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Flow has the names of the keys whose limits the calls of a timer keep to, with a space
// between two of them: a timer without any has an empty word more and no list. The words
// have no space in them.
type Flow string

// FlowOf makes one of keys. A key that is empty, or has a space, is one word, too, which is not valid.
func FlowOf(keys []string) Flow {
	words := make([]string, len(keys))
	for i, k := range keys {
		words[i] = strings.ReplaceAll(cmp.Or(k, " "), " ", "\x00")
	}
	return Flow(strings.Join(words, " "))
}

// Keys are the names.
func (f Flow) Keys() []string {
	if f == "" {
		return nil
	}
	return strings.Split(string(f), " ")
}

// Hold is how long something kept a task from being called that was due.
type Hold struct {
	By   string // pause, quota, flow, cooldown or breaker
	Name string // of the key, the app or the target
	Took time.Duration
}

// MaxHolds is how many holds a task has at most: the rest is added to the last.
const MaxHolds = 4

// AddHolds adds to what held a task, merged by what it was.
func (t *Task) AddHolds(more []Hold) {
	t.Holds = slices.Clone(t.Holds) // a reader may have them
	for _, h := range more {
		i := slices.IndexFunc(t.Holds, func(x Hold) bool { return x.By == h.By && x.Name == h.Name })
		switch {
		case i >= 0:
			t.Holds[i].Took += h.Took
		case len(t.Holds) < MaxHolds:
			t.Holds = append(t.Holds, h)
		default:
			t.Holds[MaxHolds-1].Took += h.Took
		}
	}
}

// Held is for how long the task was held.
func (t *Task) Held() (held time.Duration) {
	for i := range t.Holds {
		held += t.Holds[i].Took
	}
	return held
}

// OwnLateness is the lateness of the first attempt without what held it: that is late by
// somebody's will. Negative where Lateness is.
func (t *Task) OwnLateness() time.Duration {
	if t.Lateness < 0 || len(t.Attempts) == 0 {
		return t.Lateness
	}
	return max(0, t.Lateness-t.Attempts[0].Phases.Hold)
}
